package redisgate_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// heard keeps the errors with which a limiter has called a function of its Options.
type heard struct {
	mu   sync.Mutex // guards what follows
	list []error
}

func (h *heard) add(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, err)
}

func (h *heard) all() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// A server that forgets once a second never lets a dial begin. The shares go on, and the limit holds all the
// time: before, meanwhile, and when the server remembers again.
func TestTheSharesGoOnWhileRedisForgets(t *testing.T) {
	for _, every := range []time.Duration{500 * time.Millisecond, time.Second, 1700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.delay = time.Millisecond
			var told heard
			o := hundred()
			f := newFleet(t, 3, s, o)
			o.Away = told.add
			one := f.add(s, o)
			ended := make(chan struct{})
			go func() { defer close(ended); f.dial(t.Context(), 700, 0) }()
			time.Sleep(4 * time.Second)
			require.Zero(t, one.Status().ClosedUntil)
			for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(every) {
				s.set(func(s *server) { s.flush() })
			}
			all, shared := f.count()
			require.Greater(t, shared, 400, "every %v", every)
			status := one.Status()
			require.True(t, status.Away)
			require.ErrorContains(t, status.Err, "Redis has lost our keys")
			require.Positive(t, time.Until(status.ClosedUntil))
			require.Equal(t, []error{status.Err}, told.all())
			time.Sleep(5 * time.Second)
			require.Equal(t, []error{status.Err, nil}, told.all())
			require.Zero(t, one.Status().ClosedUntil)
			later, end := f.count()
			require.Greater(t, later-all, end-shared, "Redis lets dials begin again")
			<-ended
			all, _ = f.count()
			require.Equal(t, 4*700, all)
			require.LessOrEqual(t, f.most(time.Second), 100)
		})
	}
}

// The window is shorter than the time between two requests while Redis forgets, so that all silences of the
// processes look like outages.
func TestRedisTakesOverAgainAfterForgettingWithShortWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), hundred()
		o.Rate, o.Local.N = budget.Window{N: 10, Per: 100 * time.Millisecond}, 2
		f := newFleet(t, 3, s, o)
		ended := make(chan struct{})
		go func() { defer close(ended); f.dial(t.Context(), 700, 0) }()
		time.Sleep(4 * time.Second)
		for range 10 {
			s.set((*server).flush)
			time.Sleep(500 * time.Millisecond)
		}
		require.ErrorContains(t, f.procs[0].Status().Err, "Redis has lost our keys")
		time.Sleep(2 * time.Second)
		require.NoError(t, f.procs[0].Status().Err)
		<-ended
		require.LessOrEqual(t, f.most(o.Rate.Per), o.Rate.N)
	})
}

// A server that forgets now and then costs a pause, as it always has, and does not count as away.
func TestAServerThatForgetsTwiceIsNotAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), hundred()
		var told heard
		o.Away = told.add
		l := newLimiter(t, s, o)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = l.Wait(ctx)
			}
		})
		for range 5 {
			for range 2 {
				s.set(func(s *server) { s.flush() })
				time.Sleep(1500 * time.Millisecond) // it is closed for 2.05 s, and asked when that is over
			}
			require.Positive(t, time.Until(l.Status().ClosedUntil))
			time.Sleep(3 * time.Second)
			require.Zero(t, l.Status().ClosedUntil)
		}
		require.Zero(t, l.Status().Shared)
		require.Empty(t, told.all())
	})
}

// whileDialing keeps one dial waiting until the test ends. The channel gets each error with which Away is called.
func whileDialing(t *testing.T, c redisgate.Client) (l *redisgate.Limiter, told chan error) {
	o := patient()
	told = make(chan error, 100)
	o.Away = func(err error) {
		select {
		case told <- err:
		default: // the test has ended
		}
	}
	l = newLimiter(t, c, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = l.Wait(ctx)
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	return l, told
}

// until calls f over and over until a report of Away has come, which it checks.
func until(t *testing.T, l *redisgate.Limiter, told chan error, f func()) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; f() {
		select {
		case err := <-told:
			require.ErrorContains(t, err, "Redis has lost our keys")
			return
		default:
			require.True(t, time.Now().Before(end), "Away is not called: %+v", l.Status())
		}
	}
}

func TestARealServerThatIsEmptiedOverAndOverCountsAsAway(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t)
	c := s.client(t)
	l, told := whileDialing(t, s.client(t))
	flush := func() {
		require.NoError(t, c.FlushAll(t.Context()).Err())
		time.Sleep(time.Second)
	}
	until(t, l, told, flush)
	for l.Status().Shared == 0 {
		flush()
	}
	require.NoError(t, <-told, "it remembers again")
	granted := l.Status().Granted
	require.Eventually(t, func() bool { return l.Status().Granted > granted }, time.Minute, 20*time.Millisecond)
}

// The keys are evicted, because others fill the memory.
func TestARealServerThatEvictsTheKeysCountsAsAway(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random")
	c := s.client(t)
	l, told := whileDialing(t, s.client(t))
	n := 0
	until(t, l, told, func() {
		_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for range 500 {
				n++
				p.Set(t.Context(), "other:"+strings.Repeat("x", n%7)+time.Now().String(), strings.Repeat("y", 20_000), 0)
			}
			return nil
		})
		require.NoError(t, err)
	})
	require.Eventually(t, func() bool { return l.Status().Shared > 0 }, time.Minute, 20*time.Millisecond)
}

func TestAMissingPasswordIsNamed(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t, "--requirepass", "right-password")
	o := patient()
	o.Timeout = 10 * time.Second // what fails is to be the password
	l := newLimiter(t, s.client(t), o)
	wait(t, l)
	require.True(t, l.Status().Away)
	require.ErrorContains(t, l.Status().Err, "redisgate: Redis wants a password, and the client has none: ")
}

// One process of a fleet has another limit. Differ is called in each process, and once more when that process has ended.
func TestProcessesWithOtherLimitsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var told [3]heard
		open := func(i int, o redisgate.Options) *redisgate.Limiter {
			o.Differ = told[i].add
			return newLimiter(t, s, o)
		}
		first, second := open(0, hundred()), open(1, hundred())
		other := hundred()
		other.Rate = budget.Window{N: 50, Per: 2 * time.Second}
		third := open(2, other)
		ask := func(limiters ...*redisgate.Limiter) {
			for range 5 {
				for _, l := range limiters {
					require.NoError(t, l.Wait(t.Context()))
				}
			}
		}
		ask(first, second)
		require.Empty(t, told[0].all())
		ask(first, second, third)
		synctest.Wait()
		const here = "redisgate: another process has other limits for the key venue: "
		for i, want := range []string{"50 per 2s, and this one 100 per 1s", "50 per 2s, and this one 100 per 1s", "100 per 1s, and this one 50 per 2s"} {
			require.Len(t, told[i].all(), 1)
			require.EqualError(t, told[i].all()[0], here+want)
		}
		require.Equal(t, told[0].all()[0], first.Status().Differ)
		time.Sleep(59 * time.Second)
		ask(first, second)
		require.Len(t, told[0].all(), 1, "it may come again")
		time.Sleep(2 * time.Second)
		ask(first, second)
		require.Equal(t, []error{nil}, told[0].all()[1:])
		require.NoError(t, first.Status().Differ)

		other = hundred()
		other.Slots = 7
		ask(open(2, other), first)
		require.EqualError(t, first.Status().Differ, here+"100 per 1s, 7 slots, and this one 100 per 1s")
	})
}

func TestARealServerTellsOfOtherLimits(t *testing.T) {
	t.Parallel()
	s := newRedisServer(t)
	o := patient()
	one := newLimiter(t, s.client(t), o)
	var told atomic.Pointer[error]
	o.Rate.N, o.Local.N = 50, 5
	o.Differ = func(err error) { told.Store(&err) }
	two := newLimiter(t, s.client(t), o)
	wait(t, one)
	wait(t, two)
	require.Eventually(t, func() bool { return told.Load() != nil }, time.Minute, 20*time.Millisecond)
	require.EqualError(t, *told.Load(), "redisgate: another process has other limits for the key venue: 100 per 1s, and this one 50 per 1s")
}
