package run_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
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

// Promise 9: an endpoint that is gone ends the Conn.
func TestAVerdictOfStopEndsTheConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Refuse(scene.Answered(410))
		<-c.Done()
		require.ErrorIs(t, c.Err(), net.ErrClosed)
		var end *reconnect.EndError
		require.ErrorAs(t, c.Err(), &end)
		require.Equal(t, scene.Answered(410), end.Err)
		_, err := c.Read(t.Context(), nil)
		require.Equal(t, c.Err(), err)
		require.Equal(t, c.Err(), c.Await(t.Context(), reconnect.StateReady))
	})
}

// The end by a verdict does not read as if the program had called Close.
func TestAnEndForGoodSaysWhyInEachError(t *testing.T) {
	for name, down := range map[string]reconnect.WhenDown{
		"fail": reconnect.WhenDownFail, "wait": reconnect.WhenDownWait, "keep": reconnect.WhenDownKeep,
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := reconnect.Options{
				WhenDown: down,
				Outbox:   reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}},
			}
			c := s.Open(&o)
			s.WantDial().Refuse(backoff.Permanent(errors.New("account deleted")))
			<-c.Done()
			_, read := c.Read(t.Context(), nil)
			_, awaited := c.AwaitSession(t.Context())
			for what, err := range map[string]error{
				"Err":          c.Err(),
				"Read":         read,
				"AwaitReady":   c.AwaitReady(t.Context()),
				"Status":       c.Status().Err,
				"AwaitSession": awaited,
				"Write":        c.Write(t.Context(), scene.Text("m")),
				"Send":         c.Send(reconnect.Outgoing{Message: scene.Text("m")}),
				"SendWait":     c.SendWait(t.Context(), reconnect.Outgoing{Message: scene.Text("m")}),
			} {
				require.ErrorContains(t, err, "ended for good: account deleted", "%s, %s", name, what)
				require.ErrorIs(t, err, net.ErrClosed, "%s, %s", name, what)
				require.NotContains(t, err.Error(), net.ErrClosed.Error(), "%s, %s", name, what)
			}
		})
	}
}

// Promise 9: the answer 410, and no other, ends the Conn.
func TestAnEndpointThatIsGoneIsNotAskedAgain(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		server.Next(conntest.Status(410, nil))
		c := server.Open(t, nil)
		<-c.Done()
		require.ErrorAs(t, c.Err(), new(*reconnect.EndError))
		require.True(t, scene.HasStatus(410)(c.Err()))
		require.Len(t, server.Network.Dials(scene.WSAddr), 1)
	})
}

// Promise 9: after a verdict of slow the next dial comes 5 to 15 s later.
func TestAVerdictOfSlowWaitsForSeconds(t *testing.T) {
	for _, status := range []int{401, 403} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			s.Open(nil)
			s.WantDial().Refuse(scene.Answered(status))
			at := s.WantDial().At
			require.GreaterOrEqual(t, at, 5*time.Second)
			require.Less(t, at, 15*time.Second)
		})
	}
}

// Promise 9: a refusal that somebody has to mend is retried, at first about 10 s apart and later minutes, and
// the status has it.
func TestARefusalThatSomebodyHasToMendIsRetriedAtLastMinutesApart(t *testing.T) {
	for _, code := range []int{401, 403, 404} {
		scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
			server.Next(conntest.Status(code, nil))
			c := server.Open(t, &reconnect.Options{Run: reconnect.RunOptions{Rand: rand.NewPCG(1, 2)}})
			time.Sleep(time.Hour)
			require.True(t, scene.HasStatus(code)(c.Status().Err))
			dials := server.Network.Dials(scene.WSAddr)
			require.Greater(t, len(dials), 20)
			if code == 404 {
				require.Less(t, dials[1].Sub(dials[0]), 2*time.Second, "the first may be a deploy")
				dials = dials[1:]
			}
			for i := range dials[1:] {
				wait, d := dials[i+1].Sub(dials[i]), min(10*math.Pow(1.2, float64(i)), 120)
				require.GreaterOrEqual(t, wait.Seconds(), d/2-1e-6)
				require.Less(t, wait.Seconds(), d*3/2+1e-6)
			}
		})
	}
}

// Promise 9: a failure that may pass by itself is an ordinary loss the first time, also after
// an hour of good service. From the second in a row on it is slow.
func TestAnOddEndIsSlowOnlyFromTheSecondInARowOn(t *testing.T) {
	// Each error that may pass by itself.
	for name, end := range map[string]error{
		"close 1002":       &conn.CloseError{Code: 1002},
		"close 1008":       &conn.CloseError{Code: 1008, Reason: "pong timeout"},
		"broken frame":     &conn.ProtocolError{Err: scene.ErrLost},
		"alert of TLS":     &net.OpError{Op: "remote error", Err: scene.ErrLost},
		"not found":        scene.Answered(404),
		"upgrade required": scene.Answered(426),
		"no WebSocket":     scene.Answered(200),
		"bad certificate":  x509.UnknownAuthorityError{},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Open(nil)
				d := s.WantDial()
				// A session of an hour ends with it, twice: each time the next dial comes soon.
				for range 2 {
					peer := d.Accept()
					time.Sleep(time.Hour)
					lost := s.Now()
					peer.Fail(end)
					d = s.WantDial()
					require.Less(t, d.At-lost, 2*time.Second, "stable sessions are no row")
				}
				// The dial after it fails with it too: that is the second in a row.
				lost := s.Now()
				d.Refuse(end)
				d = s.WantDial()
				require.GreaterOrEqual(t, d.At-lost, 5*time.Second, "the second in a row")
			})
		})
	}
}

// Promise 9: new credentials are tried at once. If they are refused too, the next try comes
// after the wait of a slow verdict.
func TestStaleCredentialsAreMadeAnewAtOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := reconnect.Options{OnSession: func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return backoff.Refresh(scene.ErrLost)
			}
			return nil
		}}
		c := s.Open(&o)
		s.WantDial().Accept()
		d := s.WantDial()
		require.Less(t, d.At, time.Second)
		require.True(t, d.Try.Refresh)
		d.Refuse(backoff.Refresh(scene.ErrLost))
		at := s.Now()
		d = s.WantDial()
		require.GreaterOrEqual(t, d.At-at, 5*time.Second)
		d.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestAPolicyThatGivesUpEndsTheConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(backoff.Limit(scene.Every(time.Second), 2, 0))
		c := s.Open(&o)
		for range 3 {
			s.WantDial().Refuse(scene.ErrLost)
		}
		<-c.Done()
		require.ErrorIs(t, c.Err(), backoff.ErrGaveUp)
		require.ErrorIs(t, c.Err(), scene.ErrLost)
	})
}

// Promises 3, 8, 9 and 10: whatever a server does, the Conn gets a typed error and waits for
// longer each time. When the server behaves again, the Conn works again.
func TestAHostileServerIsSurvived(t *testing.T) {
	for name, h := range hostilities {
		t.Run(name, func(t *testing.T) {
			scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
				// The server behaves badly four times, and then well.
				server.Dialer.Conn = conn.WebSocketOptions{
					Limits: conn.Limits{ReadLimit: 4096, MessageTimeout: 5 * time.Second},
				}
				answer := h.handshake
				if answer == nil {
					answer = server.AcceptWith(h.handler)
				}
				server.Next(answer, answer, answer, answer, server.Accept)
				// Collect the waits, which must agree with the status.
				o := scene.WithPolicy(scene.Doubling{})
				o.Run.OneConnection = true
				var waits []reconnect.WaitStart
				var opened atomic.Pointer[reconnect.Conn] // the first wait may be before New has returned
				o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
					waits = append(waits, w)
					if c := opened.Load(); c != nil && c.Status().Err != w.Cause {
						t.Errorf("the status says %v, the wait %v", c.Status().Err, w.Cause)
					}
				}}
				// In the end the Conn works.
				c := server.Open(t, &o)
				opened.Store(c)
				wantEcho(t, c, server, h)
				// There were four waits, each with the right cause, class and length.
				require.Len(t, waits, 4)
				for i, w := range waits {
					require.True(t, h.cause(w.Cause), "%T: %v", w.Cause, w.Cause)
					require.Equal(t, h.class, backoff.Classify(w.Cause).Class)
					if h.class == scene.Slow && i > 0 { // once may be a deploy, or a damaged packet
						require.Equal(t, scene.Slow, w.Verdict.Class)
						require.GreaterOrEqual(t, w.Drawn, 5*time.Second)
					} else {
						if h.lasts { // each session ends the outage before it
							i = 0
						}
						require.Equal(t, time.Second<<i, w.Drawn)
					}
				}
				require.Equal(t, 5, len(server.Network.Dials(scene.WSAddr)))
			})
		})
	}
}

// hostility is a way in which a server behaves badly, and what must come of it.
type hostility struct {
	handshake conntest.Answer  // instead of an accepted WebSocket
	handler   conntest.Handler // or what it does with one
	class     backoff.Class
	cause     func(error) bool
	lasts     bool // the session lasts until a limit of ours ends it
}

// isErr, asErr and scene.HasStatus make the check of a hostility's cause.
func isErr(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func asErr[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

var (
	tooBig  = asErr[*conn.TooBigError]
	tooSlow = asErr[*conn.SlowMessageError]
	broken  = asErr[*conn.ProtocolError]
)

// bad is the hostility of a server that sends a frame by which the session ends.
func bad(cause func(error) bool, f conntest.Frame) hostility {
	return hostility{handler: conntest.Frames(f), class: scene.Slow, cause: cause}
}

// unfinished is the hostility of a server that sends a frame, and never the rest of its message.
func unfinished(f conntest.Frame) hostility {
	return hostility{handler: conntest.Frames(f), class: scene.Retry, cause: tooSlow, lasts: true}
}

var hostilities = map[string]hostility{
	"oversized message":      bad(tooBig, conntest.Frame{Head: scene.Whole, Payload: make([]byte, 5000)}),
	"endless fragments":      {handler: endless(1000), class: scene.Slow, cause: tooBig},
	"endless empty fragment": {handler: endless(0), class: scene.Retry, cause: tooSlow, lasts: true},
	"unfinished message":     unfinished(conntest.Frame{Head: conntest.TextFrame, Payload: []byte("to be")}),
	"unfinished frame":       unfinished(conntest.Frame{Head: scene.Whole, Length: 4000, Payload: []byte("to be")}),
	"endless frame": bad(tooBig,
		conntest.Frame{Head: scene.Whole, Length: 1 << 62, Payload: []byte("to be")}),
	"reserved bits":           bad(broken, conntest.Frame{Head: scene.Whole | 0x20}),
	"unknown opcode":          bad(broken, conntest.Frame{Head: conntest.Fin | 0x5}),
	"continuation of nothing": bad(broken, conntest.Frame{Head: conntest.Fin}),
	"large ping":              bad(broken, conntest.Frame{Head: conntest.Fin | 0x9, Payload: make([]byte, 126)}),
	"impossible close code":   bad(broken, conntest.Frame{Head: conntest.Fin | 0x8, Payload: []byte{0x03, 0xee}}),
	"frame cut short":         {handler: cutShort, class: scene.Retry, cause: isErr(io.ErrUnexpectedEOF)},
	"101 and hanging up": {
		handler: func(context.Context, *websocket.Conn, *http.Request) {},
		class:   scene.Retry,
		cause:   isErr(io.EOF),
	},

	"garbage for an answer": {
		handshake: conntest.Garbage([]byte("\x00\x01SSH-2.0\r\n\r\n")),
		class:     scene.Slow,
		cause:     asErr[*dialer.Error],
	},
	"hanging up": {handshake: conntest.HangUp, class: scene.Retry, cause: isErr(io.EOF)},
	"no answer": {
		handshake: conntest.Hang,
		class:     scene.Overload,
		cause:     isErr(context.DeadlineExceeded),
	},
	"answer that trickles": {
		handshake: trickling(1, time.Second, conntest.Status(200, nil)),
		class:     scene.Overload,
		cause:     isErr(context.DeadlineExceeded),
	},
	"redirect loop": {
		handshake: http.RedirectHandler("", http.StatusFound).ServeHTTP,
		class:     scene.Slow,
		cause:     scene.HasStatus(302),
	},
	"redirect into an intranet": {
		handshake: http.RedirectHandler("http://10.0.0.1/admin", http.StatusFound).ServeHTTP,
		class:     scene.Slow,
		cause:     scene.HasStatus(302),
	},
	"1 MiB of header": {
		handshake: conntest.Status(200, http.Header{"X": {strings.Repeat("x", 1<<20)}}),
		class:     scene.Slow,
		cause:     asErr[*dialer.Error],
	},
	"wrong key": {handshake: conntest.BadAccept, class: scene.Slow, cause: scene.HasStatus(101)},
	"a page":    {handshake: conntest.Status(200, nil), class: scene.Slow, cause: scene.HasStatus(200)},
}

// endless is a handler that begins a message and never ends it, in bursts of ten fragments of size
// bytes.
func endless(size int) conntest.Handler {
	fragment := conntest.Frame{Payload: make([]byte, size)}
	return func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		ctx = c.CloseRead(ctx)
		pipe, burst := conntest.PipeOf(ctx), bytes.Repeat(fragment.Bytes(), 10)
		pipe.Inject(conntest.ToClient, conntest.Frame{Head: conntest.TextFrame}.Bytes())
		for {
			if _, err := pipe.Server().Write(burst); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// cutShort is a handler whose connection ends inside a frame.
func cutShort(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	conntest.PipeOf(ctx).Cut(conntest.ToClient, 100)
	c.Write(ctx, websocket.MessageText, make([]byte, 1000))
}

// wantEcho reads until an echo comes. Before it comes a seam for each session of a hostility
// that got so far.
func wantEcho(t *testing.T, c *reconnect.Conn, server *scene.WSServer, h hostility) {
	t.Helper()
	if h.handler != nil {
		for range 4 {
			_, err := c.Read(t.Context(), nil)
			var seam *reconnect.Seam
			require.ErrorAs(t, err, &seam)
			require.True(t, h.cause(seam.Cause), "%T: %v", seam.Cause, seam.Cause)
		}
	}
	for len(server.Network.Dials(scene.WSAddr)) < 5 {
		time.Sleep(time.Second)
	}
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	require.NoError(t, c.Write(t.Context(), scene.Text("well again")))
	synctest.Wait()
	m, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "well again", string(m.Data))
}

// trickling gives answer a, of which n bytes arrive per interval.
func trickling(n int, interval time.Duration, a conntest.Answer) conntest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		conntest.PipeOf(r.Context()).Trickle(conntest.ToClient, n, interval)
		a(w, r)
	}
}
