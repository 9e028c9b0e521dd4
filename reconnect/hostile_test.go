package reconnect_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
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
)

// hostility is how a server behaves badly, and what must come of it.
type hostility struct {
	handshake conntest.Answer  // instead of an accepted WebSocket
	handler   conntest.Handler // or what it does with one
	class     backoff.Class
	cause     func(error) bool
	lasts     bool // the session lasts until a limit of ours ends it
}

// is and as make a cause.
func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
func as[E error](err error) bool       { _, ok := errors.AsType[E](err); return ok }
func status(code int) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*dialer.Error](err)
		return ok && e.StatusCode == code
	}
}

const (
	retry, overload, slow = backoff.ClassRetry, backoff.ClassOverload, backoff.ClassSlow
	whole                 = conntest.Fin | conntest.TextFrame
)

var hostilities = map[string]hostility{
	"oversized message":       {handler: conntest.Frames(conntest.Frame{Head: whole, Payload: make([]byte, 5000)}), class: retry, cause: as[*conn.TooBigError]},
	"endless fragments":       {handler: endless(conntest.Frame{Payload: make([]byte, 1000)}), class: retry, cause: as[*conn.TooBigError]},
	"endless empty fragment":  {handler: endless(conntest.Frame{}), class: retry, cause: as[*conn.SlowMessageError], lasts: true},
	"unfinished message":      {handler: conntest.Frames(conntest.Frame{Head: conntest.TextFrame, Payload: []byte("to be")}), class: retry, cause: as[*conn.SlowMessageError], lasts: true},
	"unfinished frame":        {handler: conntest.Frames(conntest.Frame{Head: whole, Length: 4000, Payload: []byte("to be")}), class: retry, cause: as[*conn.SlowMessageError], lasts: true},
	"endless frame":           {handler: conntest.Frames(conntest.Frame{Head: whole, Length: 1 << 62, Payload: []byte("to be")}), class: retry, cause: as[*conn.TooBigError]},
	"reserved bits":           {handler: conntest.Frames(conntest.Frame{Head: whole | 0x20}), class: slow, cause: as[*conn.ProtocolError]},
	"unknown opcode":          {handler: conntest.Frames(conntest.Frame{Head: conntest.Fin | 0x5}), class: slow, cause: as[*conn.ProtocolError]},
	"continuation of nothing": {handler: conntest.Frames(conntest.Frame{Head: conntest.Fin}), class: slow, cause: as[*conn.ProtocolError]},
	"large ping":              {handler: conntest.Frames(conntest.Frame{Head: conntest.Fin | conntest.PingFrame, Payload: make([]byte, 126)}), class: slow, cause: as[*conn.ProtocolError]},
	"impossible close code":   {handler: conntest.Frames(conntest.Frame{Head: conntest.Fin | conntest.CloseFrame, Payload: conntest.ClosePayload(1006, "")}), class: slow, cause: as[*conn.ProtocolError]},
	"frame cut short":         {handler: cutShort, class: retry, cause: is(io.ErrUnexpectedEOF)},
	"101 and hanging up":      {handler: func(context.Context, *websocket.Conn, *http.Request) {}, class: retry, cause: is(io.EOF)},

	"garbage for an answer":     {handshake: conntest.Garbage([]byte("\x00\x01SSH-2.0\r\n\r\n")), class: slow, cause: as[*dialer.Error]},
	"hanging up":                {handshake: conntest.HangUp, class: retry, cause: is(io.EOF)},
	"no answer":                 {handshake: conntest.Hang, class: overload, cause: is(context.DeadlineExceeded)},
	"answer that trickles":      {handshake: conntest.Trickle(1, time.Second, conntest.Status(200, nil)), class: overload, cause: is(context.DeadlineExceeded)},
	"redirect loop":             {handshake: conntest.Redirect(""), class: slow, cause: status(302)},
	"redirect into an intranet": {handshake: conntest.Redirect("http://10.0.0.1/admin"), class: slow, cause: status(302)},
	"1 MiB of header":           {handshake: conntest.Status(200, http.Header{"X": {strings.Repeat("x", 1<<20)}}), class: slow, cause: as[*dialer.Error]},
	"wrong key":                 {handshake: conntest.BadAccept, class: slow, cause: status(101)},
	"a page":                    {handshake: conntest.Status(200, nil), class: slow, cause: status(200)},
}

// endless is a handler that begins a message and goes on with it for ever, in
// bursts of ten such frames.
func endless(f conntest.Frame) conntest.Handler {
	return func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		ctx = c.CloseRead(ctx)
		pipe, burst := conntest.PipeOf(ctx), bytes.Repeat(f.Bytes(), 10)
		pipe.Inject(conntest.ToClient, conntest.Frame{Head: conntest.TextFrame}.Bytes())
		for {
			if _, err := pipe.Server().Write(burst); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func cutShort(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	conntest.PipeOf(ctx).Cut(conntest.ToClient, 100)
	c.Write(ctx, websocket.MessageText, make([]byte, 1000))
}

// Promises 3, 8, 9 and 10, and section "Bad input" of issue 2: whatever a server
// does, it is a typed error and a growing wait, and when the server behaves again
// so does the Conn.
func TestAHostileServerIsSurvived(t *testing.T) {
	for name, h := range hostilities {
		t.Run(name, func(t *testing.T) {
			inVenue(t, nil, func(t *testing.T, v *venue) {
				v.dialer.Conn = conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: 4096, MessageTimeout: 5 * time.Second}}
				answer := h.handshake
				if answer == nil {
					answer = v.AcceptWith(h.handler)
				}
				v.Next(answer, answer, answer, answer, v.Accept)
				o := run(double{})
				o.Run.OneConnection = true
				var waits []reconnect.Wait
				var opened atomic.Pointer[reconnect.Conn] // the first wait may be before New has returned
				o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.Wait) {
					waits = append(waits, w)
					if c := opened.Load(); c != nil && c.Status().Err != w.Cause {
						t.Errorf("the status says %v, the wait %v", c.Status().Err, w.Cause)
					}
				}}
				c := v.open(t, &o)
				opened.Store(c)
				wantEcho(t, c, v, h)
				require.Len(t, waits, 4)
				for i, w := range waits {
					require.True(t, h.cause(w.Cause), "%T: %v", w.Cause, w.Cause)
					require.Equal(t, h.class, backoff.Classify(w.Cause).Class)
					if h.class == slow && i > 0 { // once may be a deploy, or a damaged packet
						require.Equal(t, slow, w.Verdict.Class)
						require.GreaterOrEqual(t, w.Drawn, backoff.SlowMin)
					} else {
						if h.lasts { // each session ends the outage before it
							i = 0
						}
						require.Equal(t, time.Second<<i, w.Drawn)
					}
				}
				require.Equal(t, 5, v.network.Count(venueAddr).Dials)
			})
		})
	}
}

// wantEcho reads until an echo comes: before it there is a seam for each session of
// a hostility that came that far.
func wantEcho(t *testing.T, c *reconnect.Conn, v *venue, h hostility) {
	t.Helper()
	if h.handler != nil {
		for range 4 {
			_, err := c.Read(t.Context(), nil)
			var seam *reconnect.Seam
			require.ErrorAs(t, err, &seam)
			require.True(t, h.cause(seam.Cause), "%T: %v", seam.Cause, seam.Cause)
		}
	}
	for v.network.Count(venueAddr).Dials < 5 {
		time.Sleep(time.Second)
	}
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	require.NoError(t, c.Write(t.Context(), text("well again")))
	synctest.Wait()
	m, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "well again", string(m.Data))
}

// Promise 10: a message without an end costs no more memory than the largest
// that is allowed.
func TestAnEndlessMessageCostsNoMemory(t *testing.T) {
	const limit, sent = 64 << 10, 256 << 20
	inVenue(t, nil, func(t *testing.T, v *venue) {
		v.dialer.Conn.ReadLimit = limit
		v.Next(v.AcceptWith(func(ctx context.Context, _ *websocket.Conn, _ *http.Request) {
			pipe := conntest.PipeOf(ctx)
			pipe.Inject(conntest.ToClient, conntest.Frame{Head: conntest.TextFrame}.Bytes())
			data := conntest.Frame{Payload: make([]byte, 1000)}.Bytes()
			for written := 0; written < sent; written += len(data) {
				if _, err := pipe.Server().Write(data); err != nil {
					return
				}
			}
		}))
		o := run(every(time.Hour))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := v.open(t, &o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		runtime.ReadMemStats(&after)
		require.ErrorAs(t, c.Status().Err, new(*conn.TooBigError))
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*limit), "bytes allocated, by the server too")
	})
}

// Promises 6 and 8: a server that stops reading.
func TestAWriteToAServerThatDoesNotReadIsCut(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		v.Next(v.AcceptWith(conntest.NeverRead), v.Accept)
		o := run(double{})
		c := v.ready(t, &o)
		stuck := c.Write(t.Context(), text(strings.Repeat("x", 1<<20)))
		wantFate(t, stuck, reconnect.FateUnknown, 1)
		require.ErrorAs(t, stuck, new(*conn.SlowMessageError))
		require.Equal(t, 10*time.Second, v.now())
		synctest.Wait()
		require.ErrorAs(t, wantSeam(t, c).Cause, new(*conn.SlowMessageError))
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.NoError(t, c.Write(t.Context(), text("well again")))
		synctest.Wait()
		wantMessage(t, c, 2, "well again")
	})
}

// A server that pings without end and never reads: our answers get stuck.
func TestAFloodOfPingsIsNoWayToHoldAConnection(t *testing.T) {
	ping := conntest.Frame{Head: conntest.Fin | conntest.PingFrame, Payload: make([]byte, 125)}
	inVenue(t, nil, func(t *testing.T, v *venue) {
		v.Next(v.AcceptWith(func(ctx context.Context, _ *websocket.Conn, _ *http.Request) {
			for ctx.Err() == nil {
				if _, err := conntest.PipeOf(ctx).Server().Write(ping.Bytes()); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}))
		o := run(every(time.Hour))
		c := v.ready(t, &o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorAs(t, c.Status().Err, new(*conn.SlowMessageError))
		require.Less(t, v.now(), 11*time.Second) // WriteTimeout after the window is full
	})
}

// Promise 9: what a deploy can cause is retried, minutes apart, and reported.
func TestARefusalThatSomebodyHasToMendIsRetriedMinutesApart(t *testing.T) {
	for _, code := range []int{401, 403, 404} {
		inVenue(t, nil, func(t *testing.T, v *venue) {
			v.Next(conntest.Status(code, nil))
			c := v.open(t, &reconnect.Options{Run: reconnect.RunOptions{Rand: rand.NewPCG(1, 2)}})
			time.Sleep(time.Hour)
			require.True(t, status(code)(c.Status().Err))
			dials := v.network.Dials(venueAddr)
			require.Greater(t, len(dials), 20)
			for i := range dials[1:] {
				wait := dials[i+1].Sub(dials[i])
				if i == 0 && code == 404 {
					require.Less(t, wait, 2*time.Second, "the first may be a deploy")
					continue
				}
				require.GreaterOrEqual(t, wait, backoff.SlowMin)
				require.Less(t, wait, backoff.SlowMax)
			}
		})
	}
}

// Promise 9: this, and no other answer, is the end.
func TestAnEndpointThatIsGoneIsNotAskedAgain(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		v.Next(conntest.Status(410, nil))
		c := v.open(t, nil)
		<-c.Done()
		require.ErrorAs(t, c.Err(), new(*reconnect.EndError))
		require.True(t, status(410)(c.Err()))
		require.Len(t, v.network.Dials(venueAddr), 1)
	})
}

// Promise 9: what may pass by itself is an ordinary loss the first time, also after
// an hour of good service; from the second in a row on it is slow.
func TestAnOddEndCostsMinutesOnlyFromTheSecondInARowOn(t *testing.T) {
	for name, end := range map[string]error{
		"close 1002":       &conn.CloseError{Code: 1002},
		"close 1008":       &conn.CloseError{Code: 1008, Reason: "pong timeout"},
		"broken frame":     &conn.ProtocolError{Err: errLost},
		"alert of TLS":     &net.OpError{Op: "remote error", Err: errLost},
		"not found":        answered(404),
		"upgrade required": answered(426),
		"no WebSocket":     answered(200),
		"bad certificate":  x509.UnknownAuthorityError{},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.open(nil)
				d := s.wantDial()
				for range 2 {
					peer := d.accept()
					time.Sleep(time.Hour)
					lost := s.now()
					peer.Fail(end)
					d = s.wantDial()
					require.Less(t, d.at-lost, 2*time.Second, "stable sessions are no row")
				}
				lost := s.now()
				d.refuse(end)
				d = s.wantDial()
				require.GreaterOrEqual(t, d.at-lost, backoff.SlowMin, "the second in a row")
			})
		})
	}
}

// Promises 2 and 9: a server that tells a herd when to come back is obeyed, and
// does not get it back as a herd.
func TestRetryAfterIsObeyedAndJittered(t *testing.T) {
	const clients, told = 100, 7 * time.Second
	for name, header := range map[string]func(now time.Time) http.Header{
		"seconds": func(time.Time) http.Header { return conntest.RetryAfter(strconv.Itoa(int(told.Seconds()))) },
		"date": func(now time.Time) http.Header {
			return conntest.RetryAfter(now.Add(told).UTC().Format(http.TimeFormat))
		},
		"epoch": func(now time.Time) http.Header {
			return conntest.RetryAfter(strconv.FormatInt(now.Add(told).Unix(), 10))
		},
	} {
		for _, code := range []int{429, 503} {
			t.Run(http.StatusText(code)+" "+name, func(t *testing.T) {
				inVenue(t, nil, func(t *testing.T, v *venue) {
					v.Next(conntest.Status(code, header(v.start)))
					var last *reconnect.Conn
					for range clients {
						v.dialer = &dialer.WebSocket{URL: v.dialer.URL, DialContext: v.network.DialContext} // a program of its own
						last = v.open(t, nil)
					}
					synctest.Wait()
					e, ok := errors.AsType[*dialer.Error](last.Status().Err)
					require.True(t, ok)
					require.Equal(t, told, e.RetryAfter)
					v.Next()
					time.Sleep(time.Minute)
					again := v.network.Dials(venueAddr)[clients:]
					require.Len(t, again, clients)
					require.GreaterOrEqual(t, again[0].Sub(v.start), told)
					require.Less(t, conntest.Peak(again, 100*time.Millisecond), clients/5)
				})
			})
		}
	}
}

// Promise 9: what a close code means.
func TestACloseCodeReachesTheReaderAndTheVerdict(t *testing.T) {
	for code, class := range map[websocket.StatusCode]backoff.Class{
		1000: retry, 1001: retry, 1012: retry, 1013: overload, 4000: retry, 4999: retry, 1008: slow,
	} {
		inVenue(t, conntest.CloseWith(code, "bye"), func(t *testing.T, v *venue) {
			o := run(every(time.Hour))
			verdict := make(chan backoff.Class, 1)
			o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.Wait) { verdict <- backoff.Classify(w.Cause).Class }}
			c := v.open(t, &o)
			require.Equal(t, class, <-verdict, code)
			e, ok := errors.AsType[*conn.CloseError](wantSeam(t, c).Cause)
			require.True(t, ok)
			require.Equal(t, conn.CloseError{Code: int(code), Reason: "bye"}, *e)
			require.ErrorAs(t, c.Status().Err, new(*conn.CloseError))
		})
	}
}
