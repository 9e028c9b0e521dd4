package redisgate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

var _ budget.SlotLimiter = (*redisgate.Limiter)(nil)

// ten lets 10 dials be under way, and 2 of each process while Redis is away.
func ten() redisgate.Options {
	return redisgate.Options{Key: "venue", Slots: 10, Local: redisgate.Share{Slots: 2}}
}

// underWay counts dials.
type underWay struct {
	mu        sync.Mutex // guards what follows
	now, most int
}

func (u *underWay) add(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now += n
	u.most = max(u.most, u.now)
}

// dial makes a process dial so often, each dial for a while.
func (u *underWay) dial(ctx context.Context, wg *sync.WaitGroup, l *redisgate.Limiter, each int, takes time.Duration) {
	for range each {
		wg.Go(func() {
			done, err := l.Acquire(ctx)
			if err == nil {
				u.add(1)
				time.Sleep(takes)
				u.add(-1)
				done()
			}
		})
	}
}

func TestNoMoreDialsAreUnderWayThanSlots(t *testing.T) {
	for _, what := range []string{"all is well", "restart", "flush", "outage"} {
		synctest.Test(t, func(t *testing.T) {
			s, u := newServer(), &underWay{}
			s.delay = time.Millisecond
			var wg sync.WaitGroup
			for range 4 {
				u.dial(t.Context(), &wg, newLimiter(t, s, ten()), 50, 700*time.Millisecond)
			}
			time.Sleep(3 * time.Second)
			switch what {
			case "restart":
				s.restart()
			case "flush":
				s.set((*server).flush)
			case "outage":
				s.set(fails(errRefused))
				time.AfterFunc(3*time.Second, s.restart)
			}
			wg.Wait()
			if what == "outage" { // a process with few slots may begin dials while those of the others go on
				require.LessOrEqual(t, u.most, 10+4*2)
			} else {
				require.Equal(t, 10, u.most, what)
			}
		})
	}
}

// Slots go around: a process that gives one back does not get it again while others wait longer.
func TestSlotsGoAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := newServer(), &underWay{}
		o := ten()
		o.Slots = 2
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		var procs []*redisgate.Limiter
		for range 6 {
			procs = append(procs, newLimiter(t, s, o))
			u.dial(ctx, &wg, procs[len(procs)-1], 100, time.Second)
		}
		wg.Wait()
		for _, l := range procs {
			require.InDelta(t, 9, l.Status().Granted, 3)
		}
	})
}

func TestASlotIsHeldForLongerThanItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := ten()
		o.Slots, o.Local, o.Lease = 1, redisgate.Share{}, 5*time.Second
		one, other := newLimiter(t, s, o), newLimiter(t, s, o)
		done, err := one.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = other.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		done()
		done() // does nothing
		start := time.Now()
		done, err = other.Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(start), 200*time.Millisecond)
		require.Equal(t, 1, other.Status().Held)
		done()
	})
}

func TestWaitKeepsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := ten()
		o.Slots, o.Local = 1, redisgate.Share{}
		l := newLimiter(t, newServer(), o)
		require.NoError(t, l.Wait(t.Context())) // the first use of the Key has a pause
		start := time.Now()
		for range 3 {
			require.NoError(t, l.Wait(t.Context()))
			require.Zero(t, l.Status().Held)
		}
		require.Less(t, time.Since(start), time.Second)
	})
}

// Close tells Redis nothing, like a kill.
func TestAProcessThatDiesLosesItsSlotsAtTheEndOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		dead, l := newLimiter(t, s, ten()), newLimiter(t, s, ten())
		for range 10 {
			_, err := dead.Acquire(t.Context())
			require.NoError(t, err)
		}
		time.Sleep(time.Minute) // they are renewed
		require.NoError(t, dead.Close())
		start := time.Now()
		for range 10 {
			_, err := l.Acquire(t.Context())
			require.NoError(t, err)
		}
		require.InDelta(t, 15, time.Since(start).Seconds(), 0.7)
	})
}

func TestAGateGivesTheSlotBackWhenTheDialIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, newServer(), ten())
		g, err := budget.NewGate(&budget.GateOptions{Limiter: l})
		require.NoError(t, err)
		done, err := g.Acquire(t.Context(), "venue.example:443")
		require.NoError(t, err)
		require.Equal(t, 1, l.Status().Held)
		done(backoff.Verdict{Class: backoff.ClassOK})
		require.Zero(t, l.Status().Held)
	})
}

func TestBothLimitsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := newServer(), &underWay{}
		o := hundred()
		o.Slots = 30
		f := newFleet(t, 3, s, o)
		var wg sync.WaitGroup
		for _, l := range f.procs {
			u.dial(t.Context(), &wg, l, 200, 400*time.Millisecond)
		}
		wg.Wait()
		all, _ := f.count()
		require.Equal(t, 600, all)
		require.LessOrEqual(t, f.most(time.Second), 100)
		require.Equal(t, 30, u.most)
	})
}

func TestAProcessThatWasCutOffDoesNotStopTheSlotsOfTheOthers(t *testing.T) {
	for _, timeout := range []time.Duration{0, 10 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o := newServer(), ten()
				o.Timeout = timeout
				way := &lonely{server: s}
				way.cut.Store(true)
				cut, other := newLimiter(t, way, o), newLimiter(t, s, o)
				for range 2 {
					done, err := other.Acquire(t.Context())
					require.NoError(t, err)
					defer done()
				}
				done, err := cut.Acquire(t.Context())
				require.NoError(t, err)
				defer done()
				way.cut.Store(false)
				for cut.Status().Away {
					time.Sleep(time.Millisecond)
				}
				start := time.Now()
				done, err = other.Acquire(t.Context())
				require.NoError(t, err)
				require.Less(t, time.Since(start), 100*time.Millisecond)
				done()
			})
		})
	}
}

// One question has failed when the slot is given back, and nothing waits any more.
func TestASlotThatIsGivenBackWhileRedisIsAwayIsFreeWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), ten()
		o.Slots, o.Local = 1, redisgate.Share{}
		one, other := newLimiter(t, s, o), newLimiter(t, s, o)
		done, err := one.Acquire(t.Context())
		require.NoError(t, err)
		s.set(fails(errRefused))
		for !one.Status().Away {
			time.Sleep(time.Millisecond)
		}
		done()
		s.set(fails(nil))
		start := time.Now()
		done, err = other.Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second)
		done()
	})
}

// The leases are over when Redis is back. A process that comes first must not get the slots that
// another one still holds, whether it has noticed the outage or not.
func TestSlotsThatAreHeldThroughALongOutageAreNotGivenTwice(t *testing.T) {
	for _, rate := range []budget.Window{{}, {N: 100, Per: time.Second}, {N: 100, Per: time.Minute}} {
		for _, noticed := range []bool{true, false} {
			t.Run(fmt.Sprint(rate.Per, noticed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { longOutage(t, rate, noticed) })
			})
		}
	}
}

func longOutage(t *testing.T, rate budget.Window, noticed bool) {
	s, o := newServer(), ten()
	o.Rate = rate
	way := &lonely{server: s}
	holds, first := newLimiter(t, way, o), newLimiter(t, s, o)
	for range 10 {
		_, err := holds.Acquire(t.Context())
		require.NoError(t, err)
	}
	begin := func() {
		for range 20 {
			go func() { _, _ = first.Acquire(t.Context()) }()
		}
	}
	if noticed {
		begin()
	}
	time.Sleep(time.Second)
	s.set(fails(errRefused))
	time.Sleep(20 * time.Second)
	way.cut.Store(true)
	asked := first.Status().Questions
	s.set(fails(nil))
	if !noticed {
		begin()
	}
	for first.Status().Questions == asked || first.Status().Away {
		time.Sleep(time.Millisecond)
	}
	way.cut.Store(false)
	time.Sleep(5 * time.Second)
	require.LessOrEqual(t, holds.Status().Held+first.Status().Held, 10+2)
}

// Nobody holds a slot, so that none can be given twice.
func TestNothingWaitsAfterALongOutageInWhichNoSlotWasHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := newLimiter(t, s, ten())
		done, err := l.Acquire(t.Context())
		require.NoError(t, err)
		done()
		time.Sleep(time.Second)
		s.set(fails(errRefused))
		done, err = l.Acquire(t.Context()) // by the share
		require.NoError(t, err)
		done()
		time.Sleep(20 * time.Second)
		s.set(fails(nil))
		for l.Status().Away {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		done, err = l.Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(start), 100*time.Millisecond)
		done()
	})
}

// To the server a fleet that was killed looks like an outage. The pause is not longer than one.
func TestOnePauseFollowsWhenAllHoldersWereKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), ten()
		o.Lease, o.Timeout = 5*time.Second, 1250*time.Millisecond
		dead := newLimiter(t, s, o)
		_, err := dead.Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, dead.Close())
		time.Sleep(2 * time.Second)
		start := time.Now()
		done, err := newLimiter(t, s, o).Acquire(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 2*o.Timeout.Seconds(), time.Since(start).Seconds(), 0.1)
		done()
	})
}

// A server that evicts keys evicts whole ones, in any combination.
func TestEvictedKeysTakeNoSlotAndNoPlaceForEver(t *testing.T) {
	for _, keys := range [][]string{{"held", "lease"}, {"held"}, {"lease"}, {"seen"}, {"queue"}, {"state"}} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o := newServer(), ten()
				o.Slots, o.Local = 1, redisgate.Share{}
				dead, waits := newLimiter(t, s, o), newLimiter(t, s, o)
				_, err := dead.Acquire(t.Context())
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = waits.Acquire(ctx) // it is in the queue
				require.Error(t, err)
				go func() { _, _ = waits.Acquire(t.Context()) }()
				time.Sleep(time.Second)
				require.NoError(t, dead.Close())
				require.NoError(t, waits.Close())
				s.set(func(s *server) {
					for _, k := range keys {
						delete(s.hashes, "redisgate:{venue}:"+k)
						delete(s.sets, "redisgate:{venue}:"+k)
					}
				})
				ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				_, err = newLimiter(t, s, o).Acquire(ctx)
				require.NoError(t, err)
			})
		})
	}
}
