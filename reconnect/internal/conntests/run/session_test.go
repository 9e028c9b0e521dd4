package run_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestDowntimeCountsFromTheLastReadySession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				return scene.ErrLost
			}
			return nil
		}
		var downtimes []time.Duration
		o.Run.Trace = &reconnect.Trace{SessionStart: func(s *reconnect.Session) {
			downtimes = append(downtimes, s.Downtime)
		}}
		s.Open(&o)
		peer := s.WantDial().Accept()
		time.Sleep(time.Hour)
		peer.Fail(scene.ErrLost)
		s.WantDial().Accept() // not ready
		s.WantDial().Accept()
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, downtimes)
	})
}

// Promise 12: SessionDone reports how long a session lasted, and for how long it was ready.
func TestSessionDoneTellsHowLongItWasReady(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(context.Context, *reconnect.Opening) error { time.Sleep(2 * time.Second); return nil }
		var ends []reconnect.SessionDone
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends = append(ends, e) }}
		s.Open(&o)
		for _, ready := range []time.Duration{9 * time.Second, 10 * time.Second} {
			peer := s.WantDial().Accept()
			time.Sleep(2*time.Second + ready)
			peer.Fail(scene.ErrLost)
			synctest.Wait()
		}
		require.Len(t, ends, 2)
		for i, e := range ends {
			require.ErrorIs(t, e.Cause, scene.ErrLost)
			ends[i].Cause = nil
		}
		require.Equal(t, []reconnect.SessionDone{
			{Session: 1, Uptime: 11 * time.Second, Ready: 9 * time.Second},
			{Session: 2, Uptime: 12 * time.Second, Ready: 10 * time.Second, Stable: true},
		}, ends)
	})
}

// SessionDone says of which kind the end was: what the error says, what the application asked for,
// and that the Conn was closed, whatever the last error was.
func TestSessionDoneTellsTheReason(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var reasons []backoff.Reason
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) {
			reasons = append(reasons, e.Reason)
		}}
		c := s.Open(&o)
		s.WantDial().Accept().Fail(io.EOF)
		s.WantDial().Accept().Fail(&conn.ProtocolError{})
		s.WantDial().Accept()
		c.Redial(3, scene.ErrLost)
		s.WantDial().Accept()
		require.NoError(t, c.Shutdown(t.Context()))
		require.Equal(t, []backoff.Reason{
			backoff.ReasonHangup, backoff.ReasonProtocol, backoff.ReasonRedial, backoff.ReasonShutdown,
		}, reasons)
	})
}

// The session has ended before OnSeam closes the Conn, so its reason stays what the seam says.
func TestCloseInOnSeamKeepsReason(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var seam reconnect.Seam
		var done reconnect.SessionDone
		c = s.Open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) {},
			OnSeam: func(_ context.Context, s *reconnect.Seam) {
				seam = *s
				c.Close()
			},
			Run: reconnect.RunOptions{Trace: &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { done = e }}},
		})
		s.WantDial().Accept().Fail(io.EOF)
		<-c.Done()
		require.Equal(t, backoff.ReasonHangup, seam.Reason)
		require.Equal(t, backoff.ReasonHangup, done.Reason)
	})
}

// The next session of a rotation was lost before the OnSeam of the old one, for which it waits, closes the Conn.
func TestCloseInOnSeamOfOldSessionKeepsReason(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var reason backoff.Reason
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(context.Context, *reconnect.Seam) { c.Close() }
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) {
			if e.Session == 2 {
				reason = e.Reason
			}
		}}
		c = s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		synctest.Wait()
		next.Fail(io.EOF)
		<-c.Done()
		require.Equal(t, backoff.ReasonHangup, reason)
	})
}

// The end of its context is why a session of Run ends, and so is Close for one of a Conn.
func TestSessionDoneTellsThatWeEndedIt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var reasons []backoff.Reason
		trace := &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { reasons = append(reasons, e.Reason) }}
		c := s.Open(&reconnect.Options{Run: reconnect.RunOptions{Trace: trace}})
		s.WantDial().Accept()
		scene.CloseAndWait(c)
		ctx, cancel := context.WithCancel(t.Context())
		_ = reconnect.Run(ctx, func(context.Context) (*scene.RunConn, error) { return &scene.RunConn{}, nil },
			func(context.Context, *scene.RunConn, *reconnect.Session) error {
				cancel()
				return scene.ErrLost
			}, &reconnect.RunOptions{Trace: trace})
		require.Equal(t, []backoff.Reason{backoff.ReasonShutdown, backoff.ReasonShutdown}, reasons)
	})
}

func TestReadyCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ready := 0
		var end reconnect.SessionDone
		_ = reconnect.Run(ctx, func(context.Context) (*scene.RunConn, error) { return &scene.RunConn{}, nil },
			func(_ context.Context, _ *scene.RunConn, s *reconnect.Session) error {
				s.Ready()
				time.Sleep(time.Second)
				s.Ready()
				cancel()
				return nil
			}, &reconnect.RunOptions{Trace: &reconnect.Trace{
				SessionReady: func(*reconnect.Session) { ready++ },
				SessionDone:  func(e reconnect.SessionDone) { end = e },
			}})
		require.Equal(t, 1, ready)
		require.Equal(t, time.Second, end.Ready)
	})
}

// Ready of a session that has ended does nothing.
func TestReadyAfterTheEndDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []string
		trace := &reconnect.Trace{
			SessionReady: func(*reconnect.Session) { events = append(events, "ready") },
			SessionDone:  func(reconnect.SessionDone) { events = append(events, "done") },
		}
		var first *reconnect.Session
		serve := func(_ context.Context, _ *scene.RunConn, s *reconnect.Session) error {
			if first == nil {
				first = s
				return scene.ErrLost
			}
			first.Ready()
			return backoff.Permanent(scene.ErrLost)
		}
		dial := func(context.Context) (*scene.RunConn, error) { return &scene.RunConn{}, nil }
		err := reconnect.Run(t.Context(), dial, serve, &reconnect.RunOptions{Trace: trace})
		require.ErrorIs(t, err, scene.ErrLost)
		require.Equal(t, []string{"done", "done"}, events)
	})
}

// Promises 4 and 5: messages between the login and its answer are not lost, and each session
// begins with a login.
func TestEachSessionLogsInOverTheWire(t *testing.T) {
	// The server sends a message before and after its answer to the login.
	say := func(ctx context.Context, c *websocket.Conn, s string) { c.Write(ctx, websocket.MessageText, []byte(s)) }
	scene.WithWSServer(t, func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		_, login, _ := c.Read(ctx)
		say(ctx, c, "early")
		say(ctx, c, "hello "+string(login))
		say(ctx, c, "late")
		conntest.Discard(ctx, c, r)
	}, func(t *testing.T, server *scene.WSServer) {
		// OnSession logs in, and delivers what comes before the answer.
		var causes []error
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			causes = append(causes, op.Cause)
			if err := op.Write(scene.Text("me")); err != nil {
				return err
			}
			for {
				m, err := op.Read()
				if err != nil || string(m.Data) == "hello me" {
					return err
				}
				op.Deliver(m)
			}
		}
		// The first session brings both messages.
		c := server.Ready(t, &o)
		scene.WantMessage(t, c, 1, "early")
		scene.WantMessage(t, c, 1, "late")
		// After a reset there is a seam, and the second session brings both again.
		server.Network.ResetAll(scene.WSAddr)
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, syscall.ECONNRESET)
		time.Sleep(time.Second)
		synctest.Wait()
		scene.WantMessage(t, c, 2, "early")
		scene.WantMessage(t, c, 2, "late")
		// Each login knew why the session before had ended.
		require.Len(t, causes, 2)
		require.NoError(t, causes[0])
		require.ErrorIs(t, causes[1], syscall.ECONNRESET)
	})
}

// Promises 4, 5 and 11, over real TCP and TLS.
func TestMessagesOverTLS(t *testing.T) {
	// A server that speaks TLS.
	server := httptest.NewUnstartedServer(http.HandlerFunc(feed))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // because Close may cut a dial, which is no news
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A client that trusts it, and logs in.
	d := &dialer.WebSocket{
		URL: "wss" + strings.TrimPrefix(server.URL, "https"),
		TLS: server.Client().Transport.(*http.Transport).TLSClientConfig,
	}
	o := scene.WithPolicy(scene.Every(time.Millisecond))
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		if err := op.Write(scene.Text("me")); err != nil {
			return err
		}
		_, err := op.Read()
		return err
	}
	c, err := reconnect.New(d, &o)
	require.NoError(t, err)
	defer scene.CloseAndWait(c)

	// Read the messages and seams of two sessions.
	var got []string
	for m, err := range c.Messages(ctx) {
		var seam *reconnect.Seam
		switch {
		case errors.As(err, &seam):
			got = append(got, fmt.Sprint("seam ", seam.Session))
		case err != nil:
			got = append(got, err.Error())
		default:
			got = append(got, fmt.Sprintf("%d: %s", m.Session, m.Data))
		}
		if len(got) == 8 {
			break
		}
	}
	require.Equal(t, []string{"1: 1", "1: 2", "1: 3", "seam 1", "2: 1", "2: 2", "2: 3", "seam 2"}, got)
}

// feed is a handler that wants a login, sends three messages and hangs up.
func feed(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	_, login, err := c.Read(r.Context())
	if err != nil || string(login) != "me" {
		return
	}
	for i := range 4 {
		if err := c.Write(r.Context(), websocket.MessageText, fmt.Append(nil, i)); err != nil {
			return
		}
	}
}

// Promises 4, 5 and 11, over real TCP and TLS: a login, three lines, a hang-up.
func TestLinesOverTLS(t *testing.T) {
	// A server that speaks TLS.
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: s.TLS.Certificates})
	require.NoError(t, err)
	defer l.Close()
	go serveLines(l)
	// A client that trusts it, and logs in.
	o := scene.WithPolicy(scene.Every(time.Millisecond))
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		if err := op.Write(scene.Text("me")); err != nil {
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
	defer scene.CloseAndWait(c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Three sessions bring three lines each, and end inside a fourth.
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
