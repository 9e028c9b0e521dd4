package budget_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

var _ reconnect.Gate = (*budget.Gate)(nil)
var _ reconnect.Gate = budget.Limited{}

func newGate(t testing.TB, o *budget.GateOptions) *budget.Gate {
	t.Helper()
	g, err := budget.NewGate(o)
	require.NoError(t, err)
	return g
}

// oneAtATime lets one dial to a host be under way.
func oneAtATime() *budget.GateOptions {
	return &budget.GateOptions{Rate: -1, Concurrent: 1, Probe: every(time.Second)}
}

func TestAcquireWaitsForThoseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, oneAtATime())
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		var served atomic.Bool
		go func() {
			done, err := g.Acquire(t.Context(), "a")
			served.Store(err == nil)
			done(success)
		}()
		synctest.Wait()
		require.False(t, served.Load())
		require.Equal(t, 1, g.Status("a").Waiting)
		other, err := g.Acquire(t.Context(), "b") // each host has a line of its own
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, g.Hosts())
		other(success)
		done(success)
		done(success) // a second call does nothing
		synctest.Wait()
		require.True(t, served.Load())
		require.Zero(t, g.Status("a").Dialing)
	})
}

func TestTheContextEndsTheWaitAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, oneAtATime())
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err = g.Acquire(ctx, "a")
		require.ErrorIs(t, err, cause)
		require.Zero(t, g.Status("a").Waiting)
		require.Equal(t, 1, g.Status("a").Dialing, "the first, whose place is its own")
		done(success)
		done, err = g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		done(success)
	})
}

// ending is a context that calls first, and ends, when its Done is called.
type ending struct {
	context.Context
	first func()
}

func (e ending) Done() <-chan struct{} {
	e.first()
	done := make(chan struct{})
	close(done)
	return done
}
func (e ending) Err() error { return context.Canceled }

func TestAPermitGrantedInTheMomentItsContextEndsIsReturned(t *testing.T) {
	ended := 0
	for range 64 { // each time Acquire finds both true, and chooses
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, oneAtATime())
			before, err := g.Acquire(t.Context(), "a")
			require.NoError(t, err)
			next := make(chan func(backoff.Verdict))
			done, err := g.Acquire(ending{context.Background(), func() {
				go func() {
					done, _ := g.Acquire(t.Context(), "a")
					next <- done
				}()
				synctest.Wait()
				before(success)
			}}, "a")
			if err == nil {
				done(success)
			} else {
				ended++
			}
			(<-next)(success)
			require.EqualValues(t, 3, g.Status("a").Granted)
			require.Zero(t, g.Status("a").Dialing)
		})
	}
	require.Positive(t, ended)
}

func TestTheGateOpensByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, &budget.GateOptions{Rate: 10, Burst: 1})
		start := time.Now()
		for range 3 {
			done, err := g.Acquire(t.Context(), "a")
			require.NoError(t, err)
			done(success)
		}
		require.Equal(t, 200*time.Millisecond, time.Since(start).Round(time.Microsecond))
	})
}

// limiter lets one through in each second.
type limiter struct{ waits int }

func (l *limiter) Wait(ctx context.Context) error {
	l.waits++
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAnyLimiterIsAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{}
		done, err := budget.Limited{Limiter: l}.Acquire(t.Context(), "a")
		require.NoError(t, err)
		done(success)
		require.Equal(t, 1, l.waits)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = budget.Limited{Limiter: l}.Acquire(ctx, "a")
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestALimiterThatGivesUpGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneAtATime()
		o.Limiter = &limiter{}
		g := newGate(t, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := g.Acquire(ctx, "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, g.Status("a").Dialing)
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		done(success)
	})
}

// broken is a Limiter and a Policy that does not return.
type broken func()

func (b broken) Wait(context.Context) error { b(); return nil }
func (b broken) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	b()
	return backoff.Step{}, true
}

// ways not to return, and what recover returns then.
var ways = map[any]func(){"nil map": func() { panic("nil map") }, nil: runtime.Goexit}

// left runs f, which does not return, and returns what it panicked with.
func left(f func()) (value any) {
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		f()
	}()
	return <-ended
}

func TestALimiterThatDoesNotReturnGivesItsPlaceBack(t *testing.T) {
	for value, way := range ways {
		o := oneAtATime()
		o.Limiter = broken(way)
		g := newGate(t, o)
		require.Equal(t, value, left(func() { _, _ = g.Acquire(t.Context(), "a") }))
		require.Zero(t, g.Status("a").Dialing)
	}
}

func TestAProbePolicyThatDoesNotReturnHoldsNobodyForever(t *testing.T) {
	for value, way := range ways {
		synctest.Test(t, func(t *testing.T) {
			o := oneAtATime()
			o.Probe = broken(way)
			g := newGate(t, o)
			done, err := g.Acquire(t.Context(), "a")
			require.NoError(t, err)
			start := time.Now()
			admitted := make(chan time.Duration)
			go func() {
				done, _ := g.Acquire(t.Context(), "a")
				defer done(success)
				admitted <- time.Since(start)
			}()
			synctest.Wait()
			require.Equal(t, value, left(func() { done(refused) }))
			require.Equal(t, time.Minute, <-admitted)
		})
	}
}

// Handlers of net/http may panic, and the program goes on. Sixteen of them must not keep
// the seventeenth from its dial.
func TestOperationsThatPanicLeaveTheGateOpen(t *testing.T) {
	for value, way := range ways {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, nil)
			r := &retry.Loop{Gate: g, Host: "a"}
			for range 16 {
				require.Equal(t, value, left(func() { _ = r.Do(t.Context(), func(context.Context) error { way(); return nil }) }))
			}
			require.NoError(t, r.Do(t.Context(), func(context.Context) error { return nil }))
			require.False(t, g.Status("a").Down)
		})
	}
}

func TestAGateForgetsIdleHosts(t *testing.T) {
	for _, rate := range []float64{500, -1, math.Inf(1)} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, &budget.GateOptions{Rate: rate})
			for i := range 64 {
				done, err := g.Acquire(t.Context(), fmt.Sprint(i))
				require.NoError(t, err)
				done(success)
			}
			time.Sleep(backoff.MaxRetryAfter)
			done, _ := g.Acquire(t.Context(), "down")
			done(refused)
			time.Sleep(time.Second)
			for i := range 2 * 64 { // until there are twice as many, so that it looks again
				done, _ = g.Acquire(t.Context(), fmt.Sprint("another ", i))
				done(success)
			}
			require.Zero(t, g.Status("0").Granted, "rate %v: forgotten", rate)
			require.True(t, g.Status("down").Down, "rate %v: not forgotten", rate)
		})
	}
}

// A host that was down, or had come back only in part, is forgotten too when nothing has
// dialed it for long.
func TestAGateForgetsHostsThatWereDownLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, nil)
		dial := func(host string, v backoff.Verdict) {
			done, err := g.Acquire(t.Context(), host)
			require.NoError(t, err)
			done(v)
		}
		for i := range 1000 {
			dial(fmt.Sprint(i), refused)
		}
		dial("back", refused)
		time.Sleep(time.Minute)
		dial("back", success)
		dial("held", backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 2 * backoff.MaxRetryAfter})
		time.Sleep(backoff.MaxRetryAfter - time.Nanosecond)
		for i := range 100 {
			dial(fmt.Sprint("new", i), success)
		}
		require.False(t, g.Status("999").Down, "forgotten")
		require.Equal(t, 2, g.Status("back").Limit, "not forgotten")
		require.False(t, g.Status("held").Held.IsZero(), "not forgotten")
		time.Sleep(time.Minute)
		for i := range 100 {
			dial(fmt.Sprint("newer", i), success)
		}
		require.Zero(t, g.Status("back").Limit, "forgotten")
	})
}

// A new host costs the same however many are down.
func BenchmarkGateOfManyHostsThatAreDown(b *testing.B) {
	for _, hosts := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			for b.Loop() {
				g := newGate(b, nil)
				for i := range hosts {
					done, _ := g.Acquire(b.Context(), fmt.Sprint(i))
					done(refused)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
		})
	}
}

func TestNewGateNamesTheWrongOption(t *testing.T) {
	_, err := budget.NewGate(&budget.GateOptions{Burst: -1})
	require.ErrorContains(t, err, "option Burst")
	_, err = budget.NewGate(&budget.GateOptions{Rate: math.NaN()})
	require.ErrorContains(t, err, "option Rate")
}

// host is a server that the connections of a process have in common.
type host struct {
	dials, failed atomic.Int64
	under, peak   atomic.Int64

	mu      sync.Mutex
	up      bool
	conns   []*conntest.Fake
	failure []time.Time
	first   time.Time // the first dial since it is up
}

func (h *host) dial(context.Context) (conn.Conn, error) {
	h.dials.Add(1)
	h.under.Add(1)
	defer h.under.Add(-1)
	h.peak.Store(max(h.peak.Load(), h.under.Load()))
	time.Sleep(10 * time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.up {
		h.failed.Add(1)
		h.failure = append(h.failure, time.Now())
		return nil, errors.New("refused")
	}
	if h.first.IsZero() {
		h.first = time.Now()
	}
	c := conntest.NewFake(nil)
	h.conns = append(h.conns, c)
	return c.Conn(), nil
}

// set brings the server back, or takes it away with all its connections. It returns the failures so far.
func (h *host) set(up bool) (failures []time.Time) {
	h.mu.Lock()
	lost, failures := h.conns, h.failure
	h.up, h.conns, h.failure, h.first = up, nil, nil, time.Time{}
	h.mu.Unlock()
	for _, c := range lost {
		c.Fail(io.EOF)
	}
	return failures
}

// firstDial returns when the first dial has been answered since the server is back.
func (h *host) firstDial() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first
}

// process is n connections that share a gate, by the names 0, 1 and so on.
func process(t *testing.T, n int, g *budget.Gate, h *host) (conns []*reconnect.Conn) {
	for i := range n {
		c, err := reconnect.New(reconnect.DialFunc(h.dial), &reconnect.Options{
			Run: reconnect.RunOptions{Name: fmt.Sprint(i), Gate: g, Host: "venue"},
		})
		require.NoError(t, err)
		conns = append(conns, c)
	}
	t.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
		for _, c := range conns {
			<-c.Done() // a dial may be under way, which sleeps
		}
	})
	return conns
}

// Promise 2, for the connections of one process: 200 of them make no more dials in an
// outage than about one a second, and come back a few at a time.
func TestTheConnectionsOfAProcessShareAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, &budget.GateOptions{Rate: -1, Concurrent: 8})
		h := &host{}
		conns := process(t, 200, g, h)
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, h.failed.Load(), int64(300), "of 200 connections in 5 minutes")
		require.True(t, g.Status("venue").Down)
		h.set(true)
		h.peak.Store(0)
		for _, c := range conns {
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		}
		require.LessOrEqual(t, h.peak.Load(), int64(8))
		require.Equal(t, int64(200), h.dials.Load()-h.failed.Load())
	})
}

// While fifty or more wait the gate knows within 1.5 s that the server is back, and fails about once a second
// until then. In the first seconds it fails as often as a lone client does, and all dials that are under way
// fail when the server goes away.
func TestAGateIsPromptWhileManyWait(t *testing.T) {
	for _, away := range []time.Duration{20 * time.Second, 20700 * time.Millisecond, time.Minute, 10 * time.Minute} {
		for _, n := range []int{60, 500} {
			synctest.Test(t, func(t *testing.T) {
				g, h := newGate(t, nil), &host{up: true}
				conns := process(t, n, g, h)
				for _, c := range conns {
					require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
				}
				h.set(false)
				lost := time.Now()
				time.Sleep(away)
				back, failures := time.Now(), h.set(true)
				for _, c := range conns {
					require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
				}
				require.LessOrEqual(t, h.firstDial().Sub(back), 1500*time.Millisecond+10*time.Millisecond, "%d wait, %v", n, away)
				require.LessOrEqual(t, len(failures), int(away/time.Second)+8) // 8: what chance allows in the first seconds
				for i, at := range failures {
					if i > 0 && at.Sub(lost) > 3*time.Second {
						require.GreaterOrEqual(t, at.Sub(failures[i-1]), time.Second)
					}
				}
				t.Logf("%d wait, away for %v: first dial answered after %v, all back after %v, %d failed", n, away, h.firstDial().Sub(back), time.Since(back), len(failures))
			})
		}
	}
}

// Two that share a gate ask no more often than the two would without.
func TestAGateOfFewAsksNoMoreOftenThanTheyWould(t *testing.T) {
	failed := func(n int, shared bool) int64 {
		h := &host{}
		synctest.Test(t, func(t *testing.T) {
			if shared {
				process(t, n, newGate(t, nil), h)
			} else {
				for range n {
					process(t, 1, newGate(t, nil), h)
				}
			}
			time.Sleep(10 * time.Minute)
		})
		return h.failed.Load()
	}
	for _, n := range []int{1, 2, 5} {
		together, alone := failed(n, true), failed(n, false)
		t.Logf("%d connections: %d failed dials in 10 min behind one gate, %d behind one each", n, together, alone)
		require.LessOrEqual(t, together, alone*11/10)
	}
}

func TestThoseThatWaitKnowTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, h := newGate(t, nil), &host{up: true}
		conns := process(t, 100, g, h)
		for _, c := range conns {
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
			require.Nil(t, c.Status().Outlook)
		}
		require.Nil(t, g.Outlook("venue"))
		require.Nil(t, g.Outlook("elsewhere"))
		h.set(false)
		time.Sleep(time.Minute)
		for range 20 {
			synctest.Wait()
			waits := 0
			for _, c := range conns {
				s := c.Status()
				if !s.AtGate {
					require.Nil(t, s.Outlook)
					continue
				}
				waits++
				require.Equal(t, g.Outlook("venue"), s.Outlook)
			}
			o := g.Outlook("venue")
			require.Equal(t, waits, o.Waiting)
			require.ErrorContains(t, o.Err, "refused")
			var by int
			_, err := fmt.Sscan(o.By, &by)
			require.NoError(t, err)
			if o.Next.IsZero() {
				require.False(t, conns[by].Status().AtGate, "it probes")
			} else {
				require.True(t, conns[by].Status().AtGate, "it will")
				time.Sleep(time.Until(o.Next))
				synctest.Wait()
				require.False(t, conns[by].Status().AtGate, "it does, at that moment")
			}
			time.Sleep(5 * time.Millisecond)
		}
		h.set(true)
		for _, c := range conns {
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		}
		require.Nil(t, g.Outlook("venue"))
	})
}

// A dial that waits costs one channel, and no more among 100,000 than among 1,000.
func BenchmarkGate(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := budget.NewGate(&budget.GateOptions{Rate: -1, Concurrent: 1})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done, _ := g.Acquire(ctx, "a")
			left := make(chan struct{})
			for range n {
				go func() { g.Acquire(ctx, "a"); left <- struct{}{} }()
			}
			for g.Status("a").Waiting < n {
				time.Sleep(time.Millisecond)
			}
			ended, end := context.WithCancel(context.Background())
			end()
			b.ReportAllocs()
			for b.Loop() {
				g.Acquire(ended, "a")
			}
			b.StopTimer()
			cancel()
			for range n {
				<-left
			}
			done(success)
		})
	}
}

// A host that is held is not down because of a refused caller.
func TestOutlookKeepsErrorAfterRefusedCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, &budget.GateOptions{Rate: -1, Concurrent: 2})
		first, err := g.AcquireAs(t.Context(), "h", "first")
		require.NoError(t, err)
		second, err := g.AcquireAs(t.Context(), "h", "second")
		require.NoError(t, err)
		down := errors.New("down for maintenance")
		first(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour}, down)
		limited := backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour, Caller: true}
		second(limited, errors.New("limited"))
		require.Equal(t, down, g.Outlook("h").Err)
	})
}

// The probe and its error are known while the host is down, and no longer.
func TestTheOutlookForgetsAProbeThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, oneAtATime())
		probe := func(name string) func(backoff.Verdict, error) {
			done, err := g.AcquireAs(t.Context(), "a", name)
			require.NoError(t, err)
			return done
		}
		probe("first")(refused, errors.New("one"))
		done := probe("second")
		require.Equal(t, &budget.Outlook{Err: errors.New("one"), By: "second"}, g.Outlook("a"))
		done(refused, errors.New("two"))
		o := g.Outlook("a")
		require.EqualError(t, o.Err, "two")
		require.Empty(t, o.By, "nobody waits")
		require.False(t, o.Next.IsZero(), "no probe is under way")
		probe("third")(success, nil)
		require.Nil(t, g.Outlook("a"))
	})
}

func TestTheOutlookIsOfTheProbeAndOfWhatCountsAgainstTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, &budget.GateOptions{Probe: every(10 * time.Second)})
		acquire := func(name string) func(backoff.Verdict, error) {
			done, err := g.AcquireAs(t.Context(), "a", name)
			require.NoError(t, err)
			return done
		}
		first, second, third := acquire("first"), acquire("second"), acquire("third")
		first(refused, errBreak)
		probing := make(chan func(backoff.Verdict, error))
		go func() { probing <- acquire("fourth") }()
		synctest.Wait()
		o := g.Outlook("a")
		require.Equal(t, &budget.Outlook{Err: errBreak, By: "fourth", Waiting: 1, Next: o.Next}, o)
		require.True(t, o.Next.After(time.Now()), "the second is under way, and is no probe")
		second(aborted, errors.New("withdrawn"))
		require.Equal(t, errBreak, g.Outlook("a").Err)
		overload := errors.New("overload")
		third(timeout, overload)
		require.Equal(t, overload, g.Outlook("a").Err)
		probe := <-probing
		require.Equal(t, &budget.Outlook{Err: overload, By: "fourth"}, g.Outlook("a"))
		probe(success, nil)
		require.Nil(t, g.Outlook("a"))
	})
}

func TestDialsThatAServerHasHeldBeginTogetherAsFarAsTheRateAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, start := newGate(t, nil), time.Now()
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: 10 * time.Second})
		began := make(chan func(backoff.Verdict))
		for range 3 {
			go func() {
				done, _ := g.Acquire(t.Context(), "a")
				began <- done
			}()
		}
		for range 3 { // none is done before all have begun
			defer (<-began)(success)
		}
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

// counting is a source of random numbers that counts them.
type counting struct{ n int }

func (c *counting) Uint64() uint64 { c.n++; return 0 }

func TestThePaceOfProbesIsDrawnFromTheSourceOfTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source counting
		g := newGate(t, &budget.GateOptions{Rand: &source})
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		done(refused)
		done, err = g.Acquire(t.Context(), "a")
		require.NoError(t, err)
		done(success)
		require.Positive(t, source.n)
	})
}

// A Conn with a zero Gate dials, waits while the host is down, and is ready after that.
func TestZeroGateHasDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g budget.Gate
		require.Empty(t, g.Hosts())
		require.Zero(t, g.Status("h"))
		require.Nil(t, g.Outlook("h"))
		fails := 3
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			if fails > 0 {
				fails--
				return nil, io.EOF
			}
			return conntest.NewFake(nil), nil
		})
		c, err := reconnect.New(dial, &reconnect.Options{Run: reconnect.RunOptions{Gate: &g, Host: "h"}})
		require.NoError(t, err)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Equal(t, []string{"h"}, g.Hosts())
		c.Close()
		<-c.Done()
	})
}
