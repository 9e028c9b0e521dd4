package conn

import (
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	limits := Limits{ReadLimit: 16 << 20, WriteTimeout: 10 * time.Second, MessageTimeout: time.Minute}
	for _, o := range []*WebSocketOptions{nil, {}} {
		require.NoError(t, o.Validate())
		d, err := o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, WebSocketOptions{Limits: limits}, d)
	}
	for _, o := range []*FramedOptions{nil, {}} {
		require.NoError(t, o.Validate())
		d, err := o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, FramedOptions{Limits: limits, Type: Binary}, d)
	}
}

func TestNegativeReadLimitIsRefusedByName(t *testing.T) {
	o := &WebSocketOptions{Limits: Limits{ReadLimit: -1}}
	require.EqualError(t, o.Validate(), "conn: option ReadLimit is -1: want a size in bytes, or 0 for 16777216")
	_, err := o.withDefaults()
	require.Equal(t, o.Validate(), err)
	require.Equal(t, o.Validate(), (&FramedOptions{Limits: o.Limits}).Validate())
}

func TestLargestReadLimitIsNotMinusOne(t *testing.T) {
	o := &WebSocketOptions{Limits: Limits{ReadLimit: math.MaxInt64}}
	d, err := o.withDefaults()
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt-1, d.ReadLimit)
	l := plain(t, o)
	l.send(frame(fin|text, "x"))
	_, err = l.Read(nil)
	require.NoError(t, err)
}

// limited is a connection in memory, both of whose limits are the same.
type limited struct {
	Conn
	peer  *end
	hello string // the message "hello" as the peer sends it
}

// eachLimited runs a test in virtual time for each kind of connection.
func eachLimited(t *testing.T, limit time.Duration, f func(t *testing.T, l *limited)) {
	t.Helper()
	for name, open := range map[string]func(t *testing.T) *limited{
		"WebSocket": func(t *testing.T) *limited {
			l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: limit, MessageTimeout: limit}})
			return &limited{l.WebSocket, l.raw, frame(fin|text, "hello")}
		},
		"Framed": func(t *testing.T) *limited {
			client, server := pipe()
			c, err := NewFramed(client, Lines{}, &FramedOptions{Limits: Limits{WriteTimeout: limit, MessageTimeout: limit}})
			require.NoError(t, err)
			t.Cleanup(func() { c.CloseNow() })
			return &limited{c, server, "hello\n"}
		},
	} {
		t.Run(name+" "+limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, open(t)) })
		})
	}
}

// reading reads one message in the background, and writing writes one.
func (l *limited) reading() (wait func() error) {
	return background(func() error { _, err := l.Read(nil); return err })
}

func (l *limited) writing() (wait func() error) {
	return background(func() error { return l.Write(TextMessage("hello")) })
}

// take lets the peer take n bytes more, and all if that is negative.
func (l *limited) take(n int) {
	l.peer.in.set(func() {
		if l.peer.in.room = len(l.peer.in.data) + n; n < 0 {
			l.peer.in.room = math.MaxInt
		}
	})
}

func (l *limited) send(part string) { _, _ = l.peer.Write([]byte(part)) }

func TestALongestOrNegativeLimitLastsForYears(t *testing.T) {
	const years = 100 * 365 * 24 * time.Hour
	for _, limit := range []time.Duration{-1, math.MinInt64, math.MaxInt64} {
		eachLimited(t, limit, func(t *testing.T, l *limited) {
			for range 2 { // also with a timer that is there already
				l.take(3)
				read, write := l.reading(), l.writing()
				l.send(l.hello[:3])
				sleep(t, years)
				takes(t, 0, func() {
					l.send(l.hello[3:])
					require.NoError(t, read())
					l.take(-1)
					require.NoError(t, write())
				})
			}
			takes(t, 0, func() { require.NoError(t, l.CloseNow()) })
		})
	}
}

func TestALimitOfANanosecondIsExact(t *testing.T) {
	eachLimited(t, 1, func(t *testing.T, l *limited) {
		takes(t, 0, func() {
			for range 100 { // what does not wait is not late
				l.send(l.hello)
				require.NoError(t, l.reading()())
				require.NoError(t, l.writing()())
			}
		})
		sleep(t, second)
		read := l.reading()
		l.send(l.hello[:3])
		takes(t, 1, func() { wantStuck(t, read(), "read") })
	})
	eachLimited(t, 1, func(t *testing.T, l *limited) {
		l.take(3)
		takes(t, 1, func() { wantStuck(t, l.writing()(), "write") })
	})
}

// wantStuck asserts that a limit of a nanosecond has ended a connection.
func wantStuck(t *testing.T, err error, op string) {
	t.Helper()
	var stuck *SlowMessageError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, SlowMessageError{op, 1}, *stuck)
}

// By the clock of the machine any message may be late, and the limit runs out at any
// moment: the race detector judges, and nothing hangs.
func TestALimitOfANanosecondOnRealSockets(t *testing.T) {
	for range 20 {
		c, peer := loopback(t, false, &WebSocketOptions{Limits: Limits{WriteTimeout: 1, MessageTimeout: 1}})
		talk(t, c, func() error { return peer.Write(t.Context(), websocket.MessageText, []byte("hello")) })

		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		server, err := l.Accept()
		require.NoError(t, err)
		framed, err := NewFramed(nc, Lines{}, &FramedOptions{Limits: Limits{WriteTimeout: 1, MessageTimeout: 1}})
		require.NoError(t, err)
		talk(t, framed, func() error { _, err := io.WriteString(server, "hello\n"); return err })
		server.Close()
		l.Close()
	}
}

// talk has c read and write until a limit ends it, if one does.
func talk(t *testing.T, c Conn, send func() error) {
	t.Helper()
	often := func(f func() error) (wait func() error) {
		return background(func() (err error) {
			for n := 0; n < 200 && err == nil; n++ {
				err = f()
			}
			return err
		})
	}
	sent := often(send)
	write := often(func() error { return c.Write(TextMessage("hello")) })
	read := often(func() error { _, err := c.Read(nil); return err })
	for _, err := range []error{write(), read()} {
		if err != nil {
			require.ErrorAs(t, err, new(*SlowMessageError))
		}
	}
	require.NoError(t, c.CloseNow())
	_ = sent() // an error, if c was cut
}
