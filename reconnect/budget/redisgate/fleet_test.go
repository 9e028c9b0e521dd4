package redisgate_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// hundred lets 100 dials begin per second, and 25 of each process while Redis is away.
func hundred() redisgate.Options {
	return redisgate.Options{
		Key: "venue", Rate: budget.Window{N: 100, Per: time.Second}, Local: redisgate.Share{N: 25},
	}
}

// newLimiter returns a Limiter that is closed at the end of the test.
func newLimiter(t testing.TB, c redisgate.Client, o redisgate.Options) *redisgate.Limiter {
	t.Helper()
	l, err := redisgate.New(c, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// fleet is some processes, each with many dials.
type fleet struct {
	t     *testing.T
	procs []*redisgate.Limiter

	mu     sync.Mutex // guards what follows
	begun  []time.Time
	shared int // of them by a share
}

// newFleet returns a fleet of n processes that ask one server.
func newFleet(t *testing.T, n int, s *server, o redisgate.Options) *fleet {
	f := &fleet{t: t}
	for range n {
		f.add(s, o)
	}
	return f
}

func (f *fleet) add(c redisgate.Client, o redisgate.Options) *redisgate.Limiter {
	l := newLimiter(f.t, c, o)
	redisgate.OnPass(l, func(now time.Time, share bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.begun = append(f.begun, now)
		if share {
			f.shared++
		}
	})
	f.procs = append(f.procs, l)
	return l
}

// dial makes each process dial so often, each dial for a while, and returns when all are done.
func (f *fleet) dial(ctx context.Context, each int, takes time.Duration) {
	var wg sync.WaitGroup
	for _, l := range f.procs {
		for range each {
			wg.Go(func() {
				done, err := l.Acquire(ctx)
				if err == nil {
					time.Sleep(takes)
					done()
				}
			})
		}
	}
	wg.Wait()
}

// count returns how many dials have begun, and how many of them by a share.
func (f *fleet) count() (all, shared int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.begun), f.shared
}

// most returns how many dials have begun at most in an interval of a length, wherever it begins.
func (f *fleet) most(per time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return mostIn(f.begun, per)
}

func mostIn(begun []time.Time, per time.Duration) (most int) {
	begun = slices.SortedFunc(slices.Values(begun), time.Time.Compare)
	first := 0
	for i, at := range begun {
		for at.Sub(begun[first]) >= per {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// The first window of an empty server passes without a dial. Then come 20 portions of 100, with a
// window of Per and Slack between them.
func TestAFleetSharesOneRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.delay = time.Millisecond
		f := newFleet(t, 4, s, hundred())
		start := time.Now()
		f.dial(t.Context(), 500, 0)
		all, shared := f.count()
		require.Equal(t, 2000, all)
		require.Zero(t, shared)
		require.LessOrEqual(t, f.most(time.Second), 100)
		require.Less(t, time.Since(start), 24*time.Second)
		require.Less(t, s.asked(), 400)
	})
}

// Ten portions of 100 are shared by five processes.
func TestTheProcessesGetEqualShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		f := newFleet(t, 5, s, hundred())
		ctx, cancel := context.WithTimeout(t.Context(), 12500*time.Millisecond) // 10 portions
		defer cancel()
		f.dial(ctx, 1000, 0)
		for _, l := range f.procs {
			require.InDelta(t, 200, l.Status().Granted, 20)
		}
		all, _ := f.count()
		require.Equal(t, 1000, all)
	})
}

// A limit that is smaller than the number of processes is given to them in turn, and a process that
// waits long for its turn seldom asks.
func TestASmallLimitGoesAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := redisgate.Options{Key: "venue", Rate: budget.Window{N: 1, Per: time.Second}}
		f := newFleet(t, 10, s, o)
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		f.dial(ctx, 100, 0)
		all, _ := f.count()
		require.InDelta(t, 34, all, 3)
		for _, l := range f.procs {
			require.InDelta(t, float64(all)/10, l.Status().Granted, 2)
		}
		require.Equal(t, 1, f.most(time.Second))
		require.Less(t, s.asked(), 12*40)
	})
}

// A process that dies does not keep its share from the others.
func TestADeadProcessLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		f := newFleet(t, 2, s, hundred())
		time.AfterFunc(5*time.Second, func() { f.procs[0].Close() })
		start := time.Now()
		f.dial(t.Context(), 1000, 0)
		require.EqualValues(t, 1000, f.procs[1].Status().Granted)
		require.Less(t, time.Since(start), 18*time.Second)
	})
}

// 2,000 waiters ask as one: what a process asks does not depend on how many of its dials wait.
func TestTheLoadOfRedisDoesNotGrowWithTheWaiters(t *testing.T) {
	asked := map[int]int{}
	for _, each := range []int{300, 3000} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			f := newFleet(t, 4, s, hundred())
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			f.dial(ctx, each, 0)
			asked[each] = s.asked()
		})
	}
	require.InDelta(t, asked[300], asked[3000], 20)
}
