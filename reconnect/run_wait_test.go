package reconnect_test

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
)

// The tests of run.go that are about waits: how they grow, when they start again, and that a herd is spread.

// Promise 3: a server that accepts and drops sees growing waits.
func TestWaitsGrowWhenSessionsAreDroppedAtOnce(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(doubling{})
		_, peer := s.ready(&o)
		wait := time.Second
		if s.form.overlap == reconnect.OverlapBreakFirst {
			wait *= 2 // because the session that was closed first was as short
		}
		for range 4 {
			lost := s.now()
			peer.Fail(errLost)
			d := s.wantDial()
			require.Equal(t, lost+wait, d.at)
			peer = d.accept()
			wait *= 2
		}
	})
}

// Promise 3.
func TestWaitsStartAgainAfterAStableSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(doubling{})
		o.Run.StableAfter = 10 * time.Second
		_, d := s.down(&o)
		tries := d.try.Number
		d.refuse(errLost)
		s.wantDial().refuse(errLost)
		d = s.wantDial()
		waited := d.at
		require.GreaterOrEqual(t, waited, 3*time.Second)
		require.Equal(t, tries+2, d.try.Number)
		peer := d.accept()
		time.Sleep(10 * time.Second)
		peer.Fail(errLost)
		d = s.wantDial()
		require.Equal(t, waited+11*time.Second, d.at, "the first wait again")
		require.Equal(t, 1, d.try.Number)
	})
}

// Promise 3: a session that was ready for less than the wait before it is not stable.
func TestASessionShorterThanItsWaitIsNotStable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(doubling{})
		o.Run.StableAfter = time.Second
		s.open(&o)
		for range 5 {
			s.wantDial().refuse(errLost)
		}
		d := s.wantDial() // after 1+2+4+8+16 s
		require.Equal(t, 31*time.Second, d.at)
		peer := d.accept()
		time.Sleep(5 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, (31+5+32)*time.Second, s.wantDial().at)
	})
}

// Promise 3: a session that was ready for less than StableAfter is not stable, though the wait
// before it was shorter still. It makes the outage younger by 30 s.
func TestASessionShorterThanStableAfterIsNotStable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(doubling{})
		s.open(&o)
		for range 6 {
			s.wantDial().refuse(errLost)
		}
		peer := s.wantDial().accept()
		require.Equal(t, 63*time.Second, s.now())
		time.Sleep(10*time.Second - 1)
		peer.Fail(errLost)
		d := s.wantDial()
		require.Equal(t, (63+10+64)*time.Second-1, d.at, "10 s by default, so this wait is the seventh")
		peer = d.accept()
		time.Sleep(64 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, (63+10+64+64+1)*time.Second-1, s.wantDial().at)
	})
}

// Promise 3: a session of 2 s ends an outage that is not older than 30 s.
func TestShortSessionsEndAYoungOutage(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(doubling{})
		_, d := s.down(&o)
		d.refuse(errLost)
		d = s.wantDial()
		peer := d.accept()
		time.Sleep(3 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, d.at+4*time.Second, s.wantDial().at, "the first wait again")
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
		}, &reconnect.RunOptions{Policy: doubling{}})
		require.ErrorIs(t, err, io.ErrNoProgress)
		require.Equal(t, []time.Duration{0, time.Hour + time.Second, 2*time.Hour + 3*time.Second, 3*time.Hour + 7*time.Second}, dials)
	})
}

// Promise 3: the count of tries starts again after a stable session, and only then.
func TestTriesAreCountedFromTheLastStableSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		var tries []int
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { tries = append(tries, w.Try) }}
		c, d := s.down(&o)
		first := d.try.Number
		tries = nil
		d.refuse(errLost)
		s.wantDial().accept().Fail(errLost)
		synctest.Wait()
		require.Equal(t, first+1, c.Status().Try)
		peer := s.wantDial().accept()
		time.Sleep(time.Minute)
		peer.Fail(errLost)
		s.wantDial().refuse(errLost)
		s.wantDial()
		require.Equal(t, []int{first + 1, first + 2, 1, 2}, tries)
	})
}

func TestThePolicyGetsTheAgeOfTheOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var elapsed []time.Duration
		o := withPolicy(elapsedPolicy{&elapsed})
		s.open(&o)
		d := s.wantDial()
		time.Sleep(3 * time.Second)
		d.refuse(errLost)
		peer := s.wantDial().accept()
		time.Sleep(time.Minute)
		peer.Fail(errLost)
		s.wantDial().refuse(errLost)
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
			defer closeAndWait(c)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		// Drop all at one instant.
		for range clients {
			(<-peers).Fail(errLost)
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
	if testing.Short() || raceEnabled() {
		clients = 1_000 // the same code at a tenth of the time
	}
	withWSServer(t, conntest.Discard, func(t *testing.T, server *wsServer) {
		conns := make([]*reconnect.Conn, clients)
		for i := range conns {
			conns[i] = server.open(t, &reconnect.Options{Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}})
		}
		for _, c := range conns {
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		}
		server.network.ResetAll(wsAddr)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, c := range conns {
			require.Equal(t, reconnect.StateReady, c.State())
		}
		dials := server.network.Dials(wsAddr)[clients:]
		require.Len(t, dials, clients)
		require.Less(t, conntest.Peak(dials, 100*time.Millisecond), clients/10)
	})
}

// Promise 9: the jittered wait is added to Retry-After.
func TestRetryAfterIsAddedToTheWait(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c, d := s.down(&o)
		d.refuse(backoff.RetryAfter(errLost, 7*time.Second))
		require.Equal(t, s.start().Add(8*time.Second), c.Status().Next)
		require.Equal(t, 8*time.Second, s.wantDial().at)
	})
}

// Promise 3: the wait before a session includes what a server asked for.
func TestARetryAfterIsAPartOfTheWaitBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var ends []reconnect.SessionDone
		o := withPolicy(every(time.Second))
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends = append(ends, e) }}
		s.open(&o)
		s.wantDial().refuse(backoff.RetryAfter(errLost, 10*time.Minute))
		peer := s.wantDial().accept()
		time.Sleep(10 * time.Minute)
		peer.Fail(errLost)
		peer = s.wantDial().accept() // after 1 s
		time.Sleep(10 * time.Second)
		peer.Fail(errLost)
		s.wantDial()
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
				withWSServer(t, nil, func(t *testing.T, server *wsServer) {
					// All clients dial, and the server asks them to wait.
					server.Next(conntest.Status(code, header(server.start)))
					var last *reconnect.Conn
					for range clients {
						server.dialer = &dialer.WebSocket{URL: server.dialer.URL, DialContext: server.network.DialContext} // so that each is like a program of its own
						last = server.open(t, nil)
					}
					// The error of a dial has the time.
					synctest.Wait()
					e, ok := errors.AsType[*dialer.Error](last.Status().Err)
					require.True(t, ok)
					require.Equal(t, asked, e.RetryAfter)
					// They come back, none too early, and spread out.
					server.Next()
					time.Sleep(time.Minute)
					again := server.network.Dials(wsAddr)[clients:]
					require.Len(t, again, clients)
					require.GreaterOrEqual(t, again[0].Sub(server.start), asked)
					require.Less(t, conntest.Peak(again, 100*time.Millisecond), clients/5)
				})
			})
		}
	}
}
