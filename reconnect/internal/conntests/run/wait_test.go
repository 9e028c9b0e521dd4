package run_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of run.go that are about waits: how they grow, when they start again, and that a herd is spread.

// Promise 3: a server that accepts and drops sees growing waits.
func TestWaitsGrowWhenSessionsAreDroppedAtOnce(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Doubling{})
		_, peer := s.Ready(&o)
		wait := time.Second
		if s.Form.Overlap == reconnect.OverlapBreakFirst {
			wait *= 2 // because the session that was closed first was as short
		}
		for range 4 {
			lost := s.Now()
			peer.Fail(scene.ErrLost)
			d := s.WantDial()
			require.Equal(t, lost+wait, d.At)
			peer = d.Accept()
			wait *= 2
		}
	})
}

// Promise 3.
func TestWaitsStartAgainAfterAStableSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Doubling{})
		o.Run.StableAfter = 10 * time.Second
		_, d := s.Down(&o)
		tries := d.Try.Number
		d.Refuse(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		d = s.WantDial()
		waited := d.At
		require.GreaterOrEqual(t, waited, 3*time.Second)
		require.Equal(t, tries+2, d.Try.Number)
		peer := d.Accept()
		time.Sleep(10 * time.Second)
		peer.Fail(scene.ErrLost)
		d = s.WantDial()
		require.Equal(t, waited+11*time.Second, d.At, "the first wait again")
		require.Equal(t, 1, d.Try.Number)
	})
}

// Promise 3: a session that was ready for less than the wait before it is not stable.
func TestASessionShorterThanItsWaitIsNotStable(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Doubling{})
		o.Run.StableAfter = time.Second
		s.Open(&o)
		for range 5 {
			s.WantDial().Refuse(scene.ErrLost)
		}
		d := s.WantDial() // after 1+2+4+8+16 s
		require.Equal(t, 31*time.Second, d.At)
		peer := d.Accept()
		time.Sleep(5 * time.Second)
		peer.Fail(scene.ErrLost)
		require.Equal(t, (31+5+32)*time.Second, s.WantDial().At)
	})
}

// Promise 3: a session that was ready for less than StableAfter is not stable, though the wait
// before it was shorter still. It makes the outage younger by 30 s.
func TestASessionShorterThanStableAfterIsNotStable(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Doubling{})
		s.Open(&o)
		for range 6 {
			s.WantDial().Refuse(scene.ErrLost)
		}
		peer := s.WantDial().Accept()
		require.Equal(t, 63*time.Second, s.Now())
		time.Sleep(10*time.Second - 1)
		peer.Fail(scene.ErrLost)
		d := s.WantDial()
		require.Equal(t, (63+10+64)*time.Second-1, d.At, "10 s by default, so this wait is the seventh")
		peer = d.Accept()
		time.Sleep(64 * time.Second)
		peer.Fail(scene.ErrLost)
		require.Equal(t, (63+10+64+64+1)*time.Second-1, s.WantDial().At)
	})
}

// Promise 3: a session of 2 s ends an outage that is not older than 30 s.
func TestShortSessionsEndAYoungOutage(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Doubling{})
		_, d := s.Down(&o)
		d.Refuse(scene.ErrLost)
		d = s.WantDial()
		peer := d.Accept()
		time.Sleep(3 * time.Second)
		peer.Fail(scene.ErrLost)
		require.Equal(t, d.At+4*time.Second, s.WantDial().At, "the first wait again")
	})
}

// Promises 3 and 4: a connection that lasts for long without being ready does not make the
// waits start again.
func TestOnlyReadinessCountsAsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var dials []time.Duration
		err := reconnect.Run(t.Context(), func(context.Context) (io.Closer, error) {
			dials = append(dials, time.Since(start))
			if len(dials) == 4 {
				return nil, backoff.Permanent(io.ErrNoProgress)
			}
			return io.NopCloser(nil), nil
		}, func(context.Context, io.Closer, *reconnect.Session) error {
			time.Sleep(time.Hour)
			return nil
		}, &reconnect.RunOptions{Policy: scene.Doubling{}})
		require.ErrorIs(t, err, io.ErrNoProgress)
		require.Equal(t, []time.Duration{0, time.Hour + time.Second, 2*time.Hour + 3*time.Second, 3*time.Hour + 7*time.Second}, dials)
	})
}

// Promise 3: the count of tries starts again after a stable session, and only then.
func TestTriesAreCountedFromTheLastStableSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var tries []int
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { tries = append(tries, w.Try) }}
		c, d := s.Down(&o)
		first := d.Try.Number
		tries = nil
		d.Refuse(scene.ErrLost)
		s.WantDial().Accept().Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, first+1, c.Status().Try)
		peer := s.WantDial().Accept()
		time.Sleep(time.Minute)
		peer.Fail(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial()
		require.Equal(t, []int{first + 1, first + 2, 1, 2}, tries)
	})
}

func TestThePolicyGetsTheAgeOfTheOutage(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var elapsed []time.Duration
		o := scene.WithPolicy(elapsedPolicy{&elapsed})
		s.Open(&o)
		d := s.WantDial()
		time.Sleep(3 * time.Second)
		d.Refuse(scene.ErrLost)
		peer := s.WantDial().Accept()
		time.Sleep(time.Minute)
		peer.Fail(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		require.Equal(t, []time.Duration{3 * time.Second, 0, time.Second}, elapsed)
	})
}

// elapsedPolicy is a policy that notes how long each outage has lasted.
type elapsedPolicy struct{ elapsed *[]time.Duration }

func (p elapsedPolicy) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	*p.elapsed = append(*p.elapsed, a.Elapsed)
	return backoff.Step{Wait: time.Second}, true
}

// Promise 2: with the default policy ten thousand clients that are dropped at one instant come
// back spread out.
func TestTenThousandClientsDoNotComeBackInStep(t *testing.T) {
	const clients = 10_000
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		// A dialer that notes the time of each dial but the first of a client.
		peers := make(chan *conntest.Fake, clients)
		var times []time.Time
		noted := make(chan time.Time, clients) // one for each client
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			fake := conntest.NewFake(nil)
			if time.Since(start) > 0 {
				noted <- time.Now()
			}
			peers <- fake
			return fake, nil
		})
		// Open all clients, and let them run for a minute.
		for range clients {
			c, err := reconnect.New(dial, nil)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		// Drop all at one instant.
		for range clients {
			(<-peers).Fail(scene.ErrLost)
		}
		// Less than a tenth of them come back within the same 100 ms.
		for range clients {
			times = append(times, <-noted)
		}
		require.Less(t, conntest.Peak(times, 100*time.Millisecond), clients/10)
	})
}

// Promise 2, over real WebSockets: all are reset at one instant, and the server is there again
// at once.
func TestAHerdOfWebSocketsDoesNotComeBackInStep(t *testing.T) {
	clients := 10_000
	if testing.Short() || scene.RaceEnabled() {
		clients = 1_000 // the same code at a tenth of the time
	}
	scene.WithWSServer(t, conntest.Discard, func(t *testing.T, server *scene.WSServer) {
		conns := make([]*reconnect.Conn, clients)
		for i := range conns {
			conns[i] = server.Open(t, &reconnect.Options{Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}})
		}
		for _, c := range conns {
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		}
		server.Network.ResetAll(scene.WSAddr)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, c := range conns {
			require.Equal(t, reconnect.StateReady, c.State())
		}
		dials := server.Network.Dials(scene.WSAddr)[clients:]
		require.Len(t, dials, clients)
		require.Less(t, conntest.Peak(dials, 100*time.Millisecond), clients/10)
	})
}

// Promise 9: the jittered wait is added to Retry-After.
func TestRetryAfterIsAddedToTheWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, d := s.Down(&o)
		d.Refuse(backoff.RetryAfter(scene.ErrLost, 7*time.Second))
		require.Equal(t, s.Start().Add(8*time.Second), c.Status().Next)
		require.Equal(t, 8*time.Second, s.WantDial().At)
	})
}

// Promise 3: the wait before a session includes what a server asked for.
func TestARetryAfterIsAPartOfTheWaitBefore(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var ends []reconnect.SessionDone
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends = append(ends, e) }}
		s.Open(&o)
		s.WantDial().Refuse(backoff.RetryAfter(scene.ErrLost, 10*time.Minute))
		peer := s.WantDial().Accept()
		time.Sleep(10 * time.Minute)
		peer.Fail(scene.ErrLost)
		peer = s.WantDial().Accept() // after 1 s
		time.Sleep(10 * time.Second)
		peer.Fail(scene.ErrLost)
		s.WantDial()
		require.False(t, ends[0].Stable, "ready for 10m after a wait of 10m1s")
		require.True(t, ends[1].Stable)
	})
}

// Promises 2 and 9: clients that a server asks to come back after a time do so, and not in
// step.
func TestRetryAfterIsObeyedAndJittered(t *testing.T) {
	const clients, asked = 100, 7 * time.Second
	// Each form of the header.
	for name, header := range map[string]func(now time.Time) http.Header{
		"seconds": func(time.Time) http.Header { return conntest.RetryAfter(strconv.Itoa(int(asked.Seconds()))) },
		"date": func(now time.Time) http.Header {
			return conntest.RetryAfter(now.Add(asked).UTC().Format(http.TimeFormat))
		},
		"epoch": func(now time.Time) http.Header {
			return conntest.RetryAfter(strconv.FormatInt(now.Add(asked).Unix(), 10))
		},
	} {
		for _, code := range []int{429, 503} {
			t.Run(http.StatusText(code)+" "+name, func(t *testing.T) {
				scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
					// All clients dial, and the server asks them to wait.
					server.Next(conntest.Status(code, header(server.Started)))
					var last *reconnect.Conn
					for range clients {
						// A new Dialer, so that each client is like a program of its own.
						server.Dialer = &dialer.WebSocket{
							URL:         server.Dialer.URL,
							DialContext: server.Network.DialContext,
						}
						last = server.Open(t, nil)
					}
					// The error of a dial has the time.
					synctest.Wait()
					e, ok := errors.AsType[*dialer.Error](last.Status().Err)
					require.True(t, ok)
					require.Equal(t, asked, e.RetryAfter)
					// They come back, none too early, and spread out.
					server.Next()
					time.Sleep(time.Minute)
					again := server.Network.Dials(scene.WSAddr)[clients:]
					require.Len(t, again, clients)
					require.GreaterOrEqual(t, again[0].Sub(server.Started), asked)
					require.Less(t, conntest.Peak(again, 100*time.Millisecond), clients/5)
				})
			})
		}
	}
}
