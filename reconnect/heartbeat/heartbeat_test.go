package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pong answers "ping", and takes "beat" without an answer.
func pong(m conn.Message) (answer conn.Message, ok bool) {
	switch string(m.Data) {
	case "ping":
		return conn.TextMessage("pong"), true
	case "beat":
		return answer, true
	}
	return answer, false
}

// dialFunc is a dialer.
type dialFunc func(context.Context) (conn.Conn, error)

func (f dialFunc) Dial(ctx context.Context) (conn.Conn, error) { return f(ctx) }

// over returns the connection that answers heartbeats over fake.
func over(t *testing.T, fake *conntest.Fake, every time.Duration) conn.Conn {
	d := &heartbeat.Dialer{Answer: pong, Every: every, Dialer: dialFunc(func(context.Context) (conn.Conn, error) {
		return conntest.Poison(fake.Conn()), nil
	})}
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	return c
}

// The server sends a heartbeat before anything else, one in the login, and one in a frame with messages. It
// goes on only when it has the answer.
func TestHeartbeatsAreAnsweredFromTheFirstMessageOn(t *testing.T) {
	got := make(chan []string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		var lines []string
		for _, frame := range []string{"ping", "ping\nwelcome", "one\nping\ntwo\nbeat\n" + strings.Repeat("x", 300), ""} {
			if frame != "" {
				err = c.Write(r.Context(), websocket.MessageText, []byte(frame))
			}
			if len(lines) == 4 || err != nil {
				break
			}
			_, line, err := c.Read(r.Context())
			if err != nil {
				break
			}
			lines = append(lines, string(line))
		}
		got <- lines
		_, _, _ = c.Read(r.Context())
	}))
	defer server.Close()
	for _, push := range []bool{false, true} {
		var seen, read []string
		ended := make(chan struct{})
		o := &reconnect.Options{
			OnSession: func(_ context.Context, o *reconnect.Opening) error {
				if err := o.Write(conn.TextMessage("login")); err != nil {
					return err
				}
				m, err := o.Read()
				if err == nil && string(m.Data) != "welcome" {
					return fmt.Errorf("%q is no welcome", m.Data)
				}
				return err
			},
			Layers: []*reconnect.Layer{{Receive: func(m reconnect.Message) bool { seen = append(seen, string(m.Data)); return false }}},
		}
		note := func(m reconnect.Message) {
			if read = append(read, string(m.Data)); len(read) == 3 {
				close(ended)
			}
		}
		if push {
			o.OnMessage = func(_ context.Context, m reconnect.Message) { note(m) }
		}
		c, err := reconnect.New(&heartbeat.Dialer{
			Dialer: &dialer.WebSocket{URL: "ws" + server.URL[len("http"):], Split: conn.Split{Func: func(d []byte, _ bool) (int, []byte, error) {
				part, _, _ := strings.Cut(string(d), "\n")
				return min(len(part)+1, len(d)), d[:len(part)], nil
			}}},
			Answer: pong,
		}, o)
		require.NoError(t, err)
		for range 3 {
			if !push {
				m, err := c.Read(t.Context(), nil)
				require.NoError(t, err)
				note(m)
			}
		}
		<-ended
		require.Equal(t, []string{"login", "pong", "pong", "pong"}, <-got)
		require.Equal(t, []string{"one", "two", strings.Repeat("x", 300)}, read)
		require.Equal(t, read, seen)
		c.Close()
		<-c.Done()
	}
}

// A session that brings nothing but heartbeats stalls, as if nothing had come.
func TestAHeartbeatDoesNotCountForStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(&conntest.FakeOptions{Transport: true})
		start := time.Now()
		d := &heartbeat.Dialer{Answer: pong, Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return fake.Conn(), nil })}
		c, err := reconnect.New(d, &reconnect.Options{Stall: reconnect.Stall{Limit: time.Minute}})
		require.NoError(t, err)
		beat := time.NewTicker(7 * time.Second)
		defer beat.Stop()
		go func() { // ends with the test
			for range 100 {
				<-beat.C
				fake.Deliver(conn.TextMessage("ping"))
			}
		}()
		_, err = c.Read(t.Context(), nil)
		var seam *reconnect.Seam
		require.ErrorAs(t, err, &seam)
		require.ErrorIs(t, seam.Cause, reconnect.ErrStalled)
		require.Equal(t, time.Minute, time.Since(start))
		require.Len(t, fake.Written(), 8)
		c.Close()
		<-c.Done()
		for range 100 {
			fake.Deliver(conn.TextMessage("ping"))
		}
		time.Sleep(time.Hour)
	})
}

// The last heartbeat, or message, comes after 21 s. The looks are at 5, 10, ... s: the look at 25 s sees the
// heartbeat, and the look at 45 s is the fourth that sees nothing.
func TestALateServerIsCut(t *testing.T) {
	for _, last := range []string{"ping", "beat", "a message"} {
		synctest.Test(t, func(t *testing.T) {
			fake := conntest.NewFake(nil)
			c := over(t, fake, 10*time.Second)
			start := time.Now()
			go func() {
				for range 3 {
					time.Sleep(7 * time.Second)
					fake.Deliver(conn.TextMessage(last))
				}
			}()
			var err error
			for err == nil {
				_, err = c.Read(nil)
			}
			require.ErrorIs(t, err, heartbeat.ErrLate)
			require.EqualError(t, err, "heartbeat: the server is late: nothing has come for 20s")
			require.Equal(t, backoff.ReasonSilent, backoff.ReasonOf(err))
			require.Equal(t, 45*time.Second, time.Since(start))
			_, again := c.Read(nil)
			require.Equal(t, err, again)
		})
	}
}

func TestTimeInWhichNobodyReadsDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		c := over(t, fake, 10*time.Second)
		fake.Deliver(conn.TextMessage("one"))
		_, err := c.Read(nil)
		require.NoError(t, err)
		time.Sleep(time.Hour + time.Second) // the application is busy; a look is due in 4 s
		require.False(t, fake.Closed())
		start := time.Now()
		_, err = c.Read(nil)
		require.ErrorIs(t, err, heartbeat.ErrLate)
		require.Equal(t, 19*time.Second, time.Since(start))
	})
}

// The server takes nothing for a while, and what it has sent waits behind the answer.
func TestTimeInWhichAnAnswerIsWrittenDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := conntest.NewFake(nil)
		c := over(t, fake, time.Second)
		fake.Hold()
		time.AfterFunc(time.Minute, fake.Release)
		fake.Deliver(conn.TextMessage("ping"), conn.TextMessage("one"))
		m, err := c.Read(nil)
		require.NoError(t, err)
		require.Equal(t, "one", string(m.Data))
		require.NoError(t, c.CloseNow())
	})
}

// mute is a connection by which nothing can be written.
type mute struct {
	conn.Conn
	err error
}

func (m mute) Write(conn.Message) error { return m.err }

// If an answer cannot be written, the close frame that comes behind the heartbeat is the cause. Without a close
// frame the failure is the cause, a second later.
func TestAnAnswerThatFailsDoesNotHideTheCause(t *testing.T) {
	broken := errors.New("broken pipe")
	synctest.Test(t, func(t *testing.T) {
		for _, says := range []error{io.EOF, nil} {
			fake := conntest.NewFake(nil)
			d := &heartbeat.Dialer{Answer: pong, Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return mute{fake, broken}, nil })}
			c, err := d.Dial(t.Context())
			require.NoError(t, err)
			fake.Deliver(conn.TextMessage("ping"))
			start := time.Now()
			if says != nil {
				time.AfterFunc(time.Second/2, fake.HangUp)
			}
			_, err = c.Read(nil)
			if says != nil {
				require.ErrorIs(t, err, says)
				require.Equal(t, time.Second/2, time.Since(start))
			} else {
				require.ErrorIs(t, err, broken)
				require.Equal(t, time.Second, time.Since(start))
			}
			c.CloseNow()
		}
	})
}

// A small message is copied into the memory of the reader, a large message is read into it, and a heartbeat
// needs none. Nothing allocates.
func TestAMessageLiesInTheMemoryOfTheReader(t *testing.T) {
	fake := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	c := over(t, fake, time.Hour)
	defer c.CloseNow()
	memory := make([]byte, 1000)
	asked := 0
	buffer := func(size int) []byte { asked++; return memory[:0:size] }
	for i, size := range []int{5, 0, 256, 257, 1000} {
		fake.Deliver(conn.TextMessage("beat"), conn.TextMessage(strings.Repeat("x", size)))
		m, err := c.(conn.Transport).ReadBuffer(buffer)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("x", size), string(m.Data))
		if size > 0 {
			require.Same(t, &memory[0], &m.Data[0], "%d", i)
		} else {
			require.Zero(t, cap(m.Data), "the caller may append to it")
		}
	}
	require.Equal(t, 4, asked)
	fake.Deliver(conn.TextMessage("12345"))
	m, err := c.(conn.Transport).ReadBuffer(func(int) []byte { return nil })
	require.NoError(t, err)
	require.Equal(t, "12345", string(m.Data))
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return
	}
	stream := &endless{Conn: fake, Transport: fake.Conn().(conn.Transport)}
	d := &heartbeat.Dialer{Answer: pong, Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return stream, nil })}
	c, err = d.Dial(t.Context())
	require.NoError(t, err)
	m, err = c.(conn.Transport).ReadBuffer(buffer)
	require.NoError(t, err)
	require.Equal(t, "message", string(m.Data))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.(conn.Transport).ReadBuffer(buffer) }))
}

// announced is a message and the size that its reader is given before, or 0 if that is unknown.
type announced struct{ size, length int }

// announcing is a connection whose messages are announced.
type announcing struct {
	conn.Conn
	conn.Transport
	messages []announced
}

func (a *announcing) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	if len(a.messages) == 0 {
		return conn.Message{}, io.EOF
	}
	m := a.messages[0]
	a.messages = a.messages[1:]
	return conn.Message{Type: conn.Text, Data: append(buffer(m.size)[:0], strings.Repeat("x", m.length)...)}, nil
}

// The second message is a heartbeat. It is read into memory of the caller if it is known to be large, or may be
// as large as the message before it.
func TestSmallHeartbeatTakesNoCallersMemory(t *testing.T) {
	for _, test := range []struct {
		first  int
		beat   announced
		buffer []int // the sizes for which the caller is asked
	}{
		{1, announced{256, 256}, []int{1}},
		{1, announced{257, 257}, []int{1, 257}},
		{257, announced{1, 1}, []int{257}},
		{256, announced{0, 1}, []int{256}},
		{257, announced{0, 1}, []int{257, 0}},
	} {
		fake := conntest.NewFake(&conntest.FakeOptions{Transport: true})
		below := &announcing{fake, fake.Conn().(conn.Transport), []announced{{test.first, test.first}, test.beat}}
		d := &heartbeat.Dialer{
			Answer: func(m conn.Message) (answer conn.Message, ok bool) { return answer, len(below.messages) == 0 },
			Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return below, nil }),
		}
		c, err := d.Dial(t.Context())
		require.NoError(t, err)
		var sizes []int
		buffer := func(size int) []byte { sizes = append(sizes, size); return nil }
		m, err := c.(conn.Transport).ReadBuffer(buffer)
		require.NoError(t, err)
		require.Len(t, m.Data, test.first)
		_, err = c.(conn.Transport).ReadBuffer(buffer)
		require.Equal(t, io.EOF, err)
		require.Equal(t, test.buffer, sizes, "%+v", test)
	}
}

// endless is a connection whose every second message is a heartbeat.
type endless struct {
	conn.Conn
	conn.Transport
	n int
}

func (e *endless) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	text := "message"
	if e.n++; e.n%2 == 0 {
		text = "beat"
	}
	return conn.Message{Type: conn.Text, Data: append(buffer(len(text)), text...)}, nil
}

func TestAConnectionKeepsItsAbilities(t *testing.T) {
	for _, o := range []conntest.FakeOptions{{}, {Pings: true}, {Transport: true}, {Pings: true, Transport: true}} {
		below := conntest.NewFake(&o).Conn()
		d := &heartbeat.Dialer{Answer: pong, Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return below, nil })}
		c, err := d.Dial(t.Context())
		require.NoError(t, err)
		_, pings := c.(conn.Pinger)
		_, transport := c.(conn.Transport)
		require.Equal(t, o, conntest.FakeOptions{Pings: pings, Transport: transport})
		_, halfCloses := c.(conn.HalfCloser)
		require.False(t, halfCloses)
		require.Equal(t, below, c.(interface{ Unwrap() conn.Conn }).Unwrap())
		c.CloseNow()
	}
}

func TestADialerHandsOnWhatIsBelow(t *testing.T) {
	below := &dialer.WebSocket{URL: "wss://host.test/path?secret"}
	d := &heartbeat.Dialer{Dialer: below, Answer: pong}
	require.NoError(t, d.Validate())
	require.Equal(t, below.Host(), d.Host())
	require.Equal(t, below.Endpoint(), d.Endpoint())
	require.Equal(t, below.DialTimeout(backoff.Attempt{}), d.DialTimeout(backoff.Attempt{}))
	plain := &heartbeat.Dialer{Dialer: dialFunc(func(context.Context) (conn.Conn, error) { return nil, io.EOF }), Answer: pong}
	require.Equal(t, "", plain.Host()+plain.Endpoint())
	_, err := plain.Dial(t.Context())
	require.Equal(t, io.EOF, err)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, d := range map[string]*heartbeat.Dialer{
		"heartbeat: Dialer.Dialer is missing":       {Answer: pong},
		"heartbeat: Dialer.Answer is missing":       {Dialer: below},
		"heartbeat: Dialer.Every is negative: -1ns": {Dialer: below, Answer: pong, Every: -1},
		"dialer: WebSocket.URL: missing":            {Dialer: &dialer.WebSocket{}, Answer: pong},
	} {
		require.EqualError(t, d.Validate(), want)
		_, err := d.Dial(canceled)
		require.EqualError(t, err, want)
	}
}

// Package reconnect reports a dialer that returns neither a connection nor an error.
func TestDialReturnsNilForNoConnection(t *testing.T) {
	below := dialFunc(func(context.Context) (conn.Conn, error) { return nil, nil })
	d := &heartbeat.Dialer{Dialer: below, Answer: pong}
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	require.Nil(t, c)
}
