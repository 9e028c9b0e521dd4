package reconnect_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// Promise 5, over a stream of bytes.
func TestFramedSessionsAreApartByASeam(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		o := run(every(time.Second))
		c := d.open(t, &o)
		d.next(t).say(t, "one\ntwo\n")
		d.network.ResetAll("")
		d.next(t).say(t, "three\n")
		wantMessage(t, c, 1, "one")
		wantMessage(t, c, 1, "two")
		require.ErrorIs(t, wantSeam(t, c).Cause, syscall.ECONNRESET)
		wantMessage(t, c, 2, "three")
		wantNothing(t, c)
	})
}

// The stream is never spliced: what the next connection begins with would
// complete the frame that the last one was cut in, for each way to lose it.
func TestAFrameIsNotCompletedByTheNextConnection(t *testing.T) {
	for name, lose := range map[string]func(c *customer){
		"reset":   func(c *customer) { c.pipe.Reset() },
		"hang up": func(c *customer) { c.Close() },
		"fin":     func(c *customer) { c.pipe.FIN(conntest.ToClient) },
		"stall":   func(c *customer) { c.pipe.Stall(conntest.Both) },
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, conn.LengthPrefix{Size: 1}, func(t *testing.T, d *desk) {
				o := run(every(time.Second))
				c := d.open(t, &o)
				first := d.next(t)
				first.say(t, "\x03one\x09half of")
				lose(first)
				d.next(t).say(t, "\x02it\x04next")
				wantMessage(t, c, 1, "one")
				require.EqualValues(t, 1, wantSeam(t, c).Session)
				wantMessage(t, c, 2, "it")
				wantMessage(t, c, 2, "next")
				wantNothing(t, c)
			})
		})
	}
}

// Promise 6, in the other direction: what was begun on one connection is not ended
// on the next, and its fate is told.
func TestAMessageCutInTwoIsUnknownAndNotSentAgain(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		o := run(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := d.open(t, &o)
		first := d.next(t)
		first.pipe.Window(conntest.ToServer, 5)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("half of it")) }()
		synctest.Wait()
		first.pipe.Reset()
		var lost *reconnect.WriteError
		require.ErrorAs(t, <-wrote, &lost)
		require.Equal(t, reconnect.FateUnknown, lost.Fate)

		second := d.next(t)
		require.NoError(t, c.Write(t.Context(), text("next")))
		line, err := second.in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "next\n", line)
	})
}

// Promise 6: a message that its framer refuses costs nothing but itself.
func TestABadMessageDoesNotCostTheConnection(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		c := d.open(t, nil)
		peer := d.next(t)
		err := c.Write(t.Context(), text("two\nlines"))
		require.ErrorIs(t, err, conn.ErrBadMessage)
		require.NoError(t, c.Write(t.Context(), text("one")))
		line, err := peer.in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "one\n", line)
		require.EqualValues(t, 1, c.Status().Session)
	})
}

// Promise 8: there is no ping in a stream, so Probe asks.
func TestAHalfOpenFramedPeerIsProbedAndCut(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		o := run(every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error { return write(text("PING")) }
		c := d.open(t, &o)
		peer := d.next(t)
		go func() { // it answers
			for {
				if _, err := peer.in.ReadString('\n'); err != nil {
					return
				}
				io.WriteString(peer, "PONG\n")
			}
		}()
		for range 10 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			wantMessage(t, c, 1, "PONG")
		}
		peer.pipe.Stall(conntest.Both)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 130*time.Second, d.now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// Promise 8: any byte is life, half a line too.
func TestAFramedPeerThatTricklesLives(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		d.dialer.Conn.MessageTimeout = -1
		o := run(every(time.Hour))
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { return nil }
		c := d.open(t, &o)
		peer := d.next(t)
		for _, piece := range strings.SplitAfter("a long line\n", "") {
			time.Sleep(25 * time.Second)
			peer.say(t, piece)
		}
		wantMessage(t, c, 1, "a long line")
	})
}

// Promise 11: the server gets all that was written, then the end of it, and is
// waited for.
func TestShutdownHalfCloses(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		c := d.open(t, nil)
		peer := d.next(t)
		require.NoError(t, c.Write(t.Context(), text("last")))
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		all, err := io.ReadAll(peer.in)
		require.NoError(t, err)
		require.Equal(t, "last\n", string(all))
		time.Sleep(3 * time.Second)
		require.Empty(t, shut)
		peer.Close()
		require.NoError(t, <-shut)
		require.Equal(t, 3*time.Second, d.now())
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// What a peer still has to say when it hears that we are done is part of the stream.
func TestShutdownReceivesUntilTheFramedPeerIsDone(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		c := d.open(t, nil)
		peer := d.next(t)
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		_, err := io.ReadAll(peer.in)
		require.NoError(t, err)
		peer.say(t, "one\ntwo\n")
		time.Sleep(time.Second)
		peer.say(t, "three\n")
		peer.Close()
		require.NoError(t, <-shut)
		for _, want := range []string{"one", "two", "three"} {
			wantMessage(t, c, 1, want)
		}
	})
}

// Promises 11 and 14: there the supervisor cannot read on, so that CloseTimeout ends
// the wait for the peer.
func TestShutdownInsideAFramedHandlerReturns(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		var c *reconnect.Conn
		shut := make(chan error, 1)
		c = d.open(t, &reconnect.Options{OnMessage: func(ctx context.Context, _ reconnect.Message) { shut <- c.Shutdown(ctx) }})
		peer := d.next(t)
		peer.say(t, "bye\n")
		_, err := io.ReadAll(peer.in)
		require.NoError(t, err)
		peer.Close()
		require.ErrorIs(t, <-shut, context.DeadlineExceeded)
		<-c.Done()
		require.Equal(t, 5*time.Second, d.now())
	})
}

// Promise 11: and not for longer than CloseTimeout.
func TestShutdownOfASilentFramedPeerIsBounded(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		c := d.open(t, nil)
		d.next(t)
		require.ErrorIs(t, c.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, d.now())
	})
}

// One of the endpoints is a black hole; the next dial goes on where the last one
// was ended.
func TestSeveralFramedEndpoints(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		d.dialer.Address, d.dialer.Addresses = "", []string{"hole.test:7", "shut.test:7", deskAddr}
		d.network.Fault("hole.test:7", conntest.Fault{Hang: true})
		d.network.Fault("shut.test:7", conntest.Fault{Refuse: true})
		o := run(every(time.Second))
		c := d.open(t, &o)
		for session := range 20 {
			peer := d.next(t)
			peer.say(t, "hello\n")
			wantMessage(t, c, uint64(session+1), "hello")
			peer.pipe.Reset()
			wantSeam(t, c)
		}
		require.NotEmpty(t, d.network.Dials("hole.test:7"))
		require.NotEmpty(t, d.network.Dials("shut.test:7"))
	})
}

// bars is a framer of a user: a message is eight bytes, neither more nor less.
type bars struct{}

func (bars) AppendFrame(dst, message []byte) ([]byte, error) {
	if len(message) != 8 {
		return dst, errors.New("a bar has eight bytes")
	}
	return append(dst, message...), nil
}

func (bars) ReadFrame(r *bufio.Reader, buf []byte, _ int) ([]byte, error) {
	return conn.ReadBody(r, buf[:0], 8)
}

func TestAFramerOfTheUser(t *testing.T) {
	atDesk(t, bars{}, func(t *testing.T, d *desk) {
		o := run(every(time.Second))
		c := d.open(t, &o)
		peer := d.next(t)
		require.NoError(t, c.Write(t.Context(), text("12345678")))
		got, err := peer.in.Peek(8)
		require.NoError(t, err)
		require.Equal(t, "12345678", string(got))
		require.ErrorIs(t, c.Write(t.Context(), text("1")), conn.ErrBadMessage)

		peer.say(t, "abcdefghijklmnopqrst")
		peer.Close()
		wantMessage(t, c, 1, "abcdefgh")
		wantMessage(t, c, 1, "ijklmnop")
		require.ErrorIs(t, wantSeam(t, c).Cause, io.ErrUnexpectedEOF)
	})
}

// Promises 4, 5 and 11, over real TCP and TLS: a login, three lines, a hang-up.
func TestLinesOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: s.TLS.Certificates})
	require.NoError(t, err)
	defer l.Close()
	go serveLines(l)
	o := run(every(time.Millisecond))
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		if err := op.Write(text("me")); err != nil {
			return err
		}
		_, err := op.Read()
		return err
	}
	c, err := reconnect.New(&dialer.Framed{
		Address: l.Addr().String(),
		Framer:  conn.Lines{CRLF: true},
		TLS:     s.Client().Transport.(*http.Transport).TLSClientConfig,
	}, &o)
	require.NoError(t, err)
	defer quit(c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for session := range uint64(3) {
		for _, want := range []string{"1", "2", "3"} {
			m, err := c.Read(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, want, string(m.Data))
			require.Equal(t, session+1, m.Session)
		}
		_, err := c.Read(ctx, nil)
		var seam *reconnect.Seam
		require.ErrorAs(t, err, &seam)
		require.ErrorIs(t, seam.Cause, io.ErrUnexpectedEOF)
	}
}

func serveLines(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		if login, _ := bufio.NewReader(nc).ReadString('\n'); login == "me\r\n" {
			io.WriteString(nc, "welcome\r\n1\r\n2\r\n3\r\nhal")
		}
		nc.Close()
	}
}
