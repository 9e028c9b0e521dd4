package redisgate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// outage is a way in which all processes lose the server for a while.
type outage struct {
	begin, end func(s *server)
}

var errRefused = errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")

func fails(err error) func(s *server) { return func(s *server) { s.err = err } }

var outages = map[string]outage{
	"restarted, and empty":            {fails(errRefused), func(s *server) { s.err, s.script, s.run = nil, "", "x"; s.flush() }},
	"restarted, with what it knew":    {fails(errRefused), func(s *server) { s.err, s.script, s.run = nil, "", "x" }},
	"cut off":                         {fails(errRefused), fails(nil)},
	"loading":                         {fails(refusal("LOADING Redis is loading the dataset in memory")), fails(nil)},
	"a replica for a while":           {fails(refusal("READONLY You can't write against a read only replica.")), fails(nil)},
	"hung":                            {func(s *server) { s.hang = make(chan struct{}) }, func(s *server) { close(s.hang); s.hang = nil }},
	"another one with a clock behind": {fails(errRefused), func(s *server) { s.err, s.run, s.offset = nil, "x", -time.Hour }},
	"another one with a clock ahead":  {fails(errRefused), func(s *server) { s.err, s.run, s.offset = nil, "x", time.Hour }},
	"emptied, and not away":           {func(s *server) { s.flush() }, func(*server) {}},
	"its scripts are gone":            {func(s *server) { s.script = "" }, func(*server) {}},
}

// Each has a share of a quarter, so that the limit holds whatever happens to the server.
func TestTheLimitHoldsThroughAnOutage(t *testing.T) {
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			for i := range 2 {
				synctest.Test(t, func(t *testing.T) { through(t, o, 3*time.Second+time.Duration(i)*170*time.Millisecond) })
			}
		})
	}
}

func through(t *testing.T, o outage, begin time.Duration) {
	s := newServer()
	s.delay = time.Millisecond
	f := newFleet(t, 4, s, hundred())
	ended := make(chan struct{})
	go func() { defer close(ended); f.dial(t.Context(), 500, 0) }()
	time.Sleep(begin)
	s.set(o.begin)
	away := s.err != nil || s.hang != nil
	_, before := f.count()
	time.Sleep(5 * time.Second)
	_, during := f.count()
	s.set(o.end)
	all, _ := f.count()
	time.Sleep(5 * time.Second)
	later, shared := f.count()
	require.Greater(t, later, all+200, "it is back by itself")
	if away {
		require.GreaterOrEqual(t, during-before, 250, "the shares are used meanwhile")
	}
	<-ended
	all, end := f.count()
	require.Equal(t, 2000, all)
	require.Equal(t, shared, end, "it stays back")
	require.LessOrEqual(t, f.most(time.Second), 100)
}

// A share of 40 each is more than the limit in all. That is the user's choice, and is kept.
func TestTheSharesAreTheLimitWhileRedisIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.err = errRefused
		o := hundred()
		o.Local.N = 40
		f := newFleet(t, 4, s, o)
		start := time.Now()
		f.dial(t.Context(), 400, 0)
		all, shared := f.count()
		require.Equal(t, 1600, all)
		require.Equal(t, 1600, shared)
		require.Equal(t, 160, f.most(time.Second))
		require.Less(t, time.Since(start), 12*time.Second) // a window before the first, and 9 between ten portions
		require.Less(t, s.asked(), 4*12*4)
	})
}

func TestAProcessThatIsCutOffAddsItsShareOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cut := newServer(), newServer()
		cut.err = errRefused
		f := newFleet(t, 3, s, hundred())
		lone := f.add(cut, hundred())
		f.dial(t.Context(), 300, 0)
		require.LessOrEqual(t, f.most(time.Second), 125)
		require.EqualValues(t, 300, lone.Status().Shared)
		require.True(t, lone.Status().Away)
		require.ErrorIs(t, lone.Status().Err, errRefused)
	})
}

// lonely is the way of one process to a server that the others reach.
type lonely struct {
	*server
	cut atomic.Bool
}

func (l *lonely) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if l.cut.Load() {
		return redis.NewCmdResult(nil, errRefused)
	}
	return l.server.EvalSha(ctx, sha, keys, args...)
}

// The process tells Redis how many dials it has begun by itself, and the others get less at once.
func TestTheDialsOfAProcessThatWasCutOffCountWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		f := newFleet(t, 1, s, hundred())
		other := f.procs[0]
		way := &lonely{server: s}
		way.cut.Store(true)
		lone := f.add(way, hundred())
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for range 200 {
			wg.Go(func() { _ = lone.Wait(ctx) })
		}
		for lone.Status().Shared < 25 {
			require.NoError(t, other.Wait(t.Context())) // so that Redis knows the last window
			time.Sleep(10 * time.Millisecond)
		}
		way.cut.Store(false)
		for lone.Status().Away {
			time.Sleep(time.Millisecond)
		}
		for range 200 {
			wg.Go(func() { _ = other.Wait(ctx) })
		}
		time.Sleep(400 * time.Millisecond) // the dials of the share are less than a second old
		require.Positive(t, lone.Status().Granted, "it does not wait for a window")
		require.LessOrEqual(t, f.most(time.Second), 100)
	})
}

// All processes lose the server and begin dials by their shares. When it is back, the first that asks
// is one that did not need it meanwhile.
func TestTheLimitHoldsWhenAnIdleProcessComesFirstAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		f := newFleet(t, 3, s, hundred())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); f.dial(ctx, 2000, 0) }()
		time.Sleep(3 * time.Second)
		s.set(fails(errRefused))
		_, shared := f.count()
		for shared < 75 {
			time.Sleep(time.Millisecond)
			_, shared = f.count()
		}
		s.set(fails(nil))
		idle := f.add(s, hundred())
		for range 100 {
			require.NoError(t, idle.Wait(t.Context()))
		}
		cancel()
		<-ended
		require.LessOrEqual(t, f.most(time.Second), 100)
	})
}

// One dial now and then, while Redis is away for long: only the first one waits for a window.
func TestAProcessThatIsIdleMeanwhileKeepsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.err = errRefused
		o := redisgate.Options{Key: "venue", Rate: budget.Window{N: 300, Per: 5 * time.Minute}, Local: redisgate.Share{N: 2}}
		l := newLimiter(t, s, o)
		window := o.Rate.Per + time.Second                                            // Slack
		for _, want := range []time.Duration{window, 0, window - 20*time.Second, 0} { // two in each window
			start := time.Now()
			require.NoError(t, l.Wait(t.Context()))
			require.Equal(t, want, time.Since(start))
			time.Sleep(10 * time.Second)
		}
	})
}

func TestTheShareIsUsedWhileAQuestionHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), hundred()
		s.hang = make(chan struct{})
		o.Timeout = 10 * time.Second
		f := newFleet(t, 1, s, o)
		start := time.Now()
		f.dial(t.Context(), 8*25, 0)
		const window = 1050 * time.Millisecond
		require.Equal(t, o.Timeout+window+7*window, time.Since(start)) // the first question, the pause, and between the portions
	})
}

// The question of a process hangs when Redis is back, and the next one is answered slowly. Meanwhile it
// uses its share, and others have asked already.
func TestTheLimitHoldsThoughAProcessNoticesLateThatRedisIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), hundred()
		s.hang = make(chan struct{}) // is never closed
		o.Timeout, o.Local.N = 2*time.Second, 50
		f := newFleet(t, 3, s, o)
		late, first, second := f.procs[0], f.procs[1], f.procs[2]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, late.Wait(ctx))
		time.Sleep(10 * time.Second)
		for asked := late.Status().Questions; late.Status().Questions == asked; {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait() // its question hangs
		s.set(func(s *server) { s.hang = nil })
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { _ = first.Wait(t.Context()) })
		}
		time.Sleep(time.Millisecond) // it has asked
		s.set(func(s *server) { s.delay = 900 * time.Millisecond })
		time.Sleep(1500 * time.Millisecond)
		wg.Go(func() { _ = second.Wait(t.Context()) })
		time.Sleep(time.Second)
		s.set(func(s *server) { s.delay = 0 })
		time.Sleep(time.Second)
		for range 50 {
			require.NoError(t, late.Wait(t.Context()))
		}
		require.EqualValues(t, 50, late.Status().Shared)
		wg.Wait()
		require.LessOrEqual(t, f.most(time.Second), 100)
	})
}

// All dials of the shares have begun, and nobody waits, when Redis is back.
func TestTheDialsOfTheSharesCountThoughNobodyWaitsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), hundred()
		s.err = errRefused
		o.Rate.Per = 10 * time.Second
		f := newFleet(t, 4, s, o)
		f.dial(t.Context(), 25, 0)
		s.set(fails(nil))
		time.Sleep(time.Second) // all notice
		for _, l := range f.procs {
			require.False(t, l.Status().Away)
		}
		fresh := f.add(s, o)
		for range 100 {
			require.NoError(t, fresh.Wait(t.Context()))
		}
		require.Equal(t, 100, f.most(10*time.Second))
	})
}

// Nothing that happens to all processes breaks the limit, in whatever order it comes.
func TestTheLimitHoldsWhateverHappens(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { whatever(t, rand.New(rand.NewPCG(seed, 14))) })
		})
	}
}

func whatever(t *testing.T, r *rand.Rand) {
	s := newServer()
	f := newFleet(t, 4, s, hundred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.dial(ctx, 2000, 0) }()
	for range 12 {
		time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
		s.set(func(s *server) {
			switch r.IntN(8) {
			case 0, 1:
				s.err = errRefused
			case 2, 3:
				s.err = nil
			case 4:
				s.run += "x"
			case 5:
				s.run += "x"
				s.flush()
			case 6:
				s.flush()
			case 7:
				s.delay = time.Duration(r.Int64N(int64(20 * time.Millisecond)))
			}
		})
	}
	all, _ := f.count()
	cancel()
	<-ended
	require.Positive(t, all)
	require.LessOrEqual(t, f.most(time.Second), 100)
}

func TestTheServersClockMayJump(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, -500 * time.Millisecond, 100 * time.Millisecond, 700 * time.Millisecond, time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.delay = time.Millisecond
				f := newFleet(t, 4, s, hundred())
				time.AfterFunc(4300*time.Millisecond, func() { s.set(func(s *server) { s.offset += jump }) })
				start := time.Now()
				f.dial(t.Context(), 300, 0)
				require.LessOrEqual(t, f.most(time.Second), 100)
				require.Less(t, time.Since(start), 18*time.Second, "it goes on")
			})
		})
	}
}

// The clock goes ahead between two portions, so that the server takes the first one to be over.
func TestAProcessNoticesThatTheClockHasGoneAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		f := newFleet(t, 1, s, hundred())
		f.dial(t.Context(), 100, 0)
		s.set(func(s *server) { s.offset = time.Hour })
		start := time.Now()
		f.dial(t.Context(), 100, 0)
		require.Equal(t, 100, f.most(time.Second))
		require.Less(t, time.Since(start), 1200*time.Millisecond, "it goes on after a window")
	})
}

// A server whose answers take longer than Slack is of no use, and is left alone for a while.
func TestASlowServerCountsAsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.delay = 30 * time.Millisecond
		var told []error
		o := hundred()
		o.Away = func(err error) { told = append(told, err) }
		f := newFleet(t, 1, s, o)
		f.dial(t.Context(), 100, 0)
		require.LessOrEqual(t, f.most(time.Second), 25)
		require.NotEmpty(t, told)
		require.ErrorContains(t, told[0], "answers take longer than Options.Slack")
	})
}

func TestAwayIsToldTheReasonAndTheReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.err = errRefused
		told := make(chan error, 10) // one for each call
		o := hundred()
		o.Away = func(err error) { told <- err }
		f := newFleet(t, 1, s, o)
		time.AfterFunc(3*time.Second, s.restart)
		f.dial(t.Context(), 200, 0)
		require.ErrorIs(t, <-told, errRefused)
		require.NoError(t, <-told)
		require.Empty(t, told)
	})
}

// The last dial leaves while its question is under way, and another one comes while Away still runs.
func TestAwayIsCalledOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.err, s.delay = errRefused, 10*time.Millisecond
		var running atomic.Int32
		var told []bool
		o := hundred()
		o.Away = func(err error) {
			if running.Add(1) > 1 {
				t.Error("two calls at once")
			}
			told = append(told, err != nil)
			time.Sleep(10 * time.Second)
			running.Add(-1)
		}
		l := newLimiter(t, s, o)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)
		time.Sleep(time.Second)
		s.set(fails(nil))
		require.NoError(t, l.Wait(t.Context()))
		for l.Status().Away { // the dial has begun by the share
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, l.Close())
		require.Equal(t, []bool{true, false}, told)
	})
}

// A server that does not tell which one it is, such as one where INFO is forbidden, works as well.
func TestAServerNeedNotSayWhichOneItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.noInfo = true
		f := newFleet(t, 2, s, hundred())
		time.AfterFunc(3*time.Second, s.restart)
		f.dial(t.Context(), 250, 0)
		_, shared := f.count()
		require.Zero(t, shared)
		require.LessOrEqual(t, f.most(time.Second), 100)
	})
}

var _ redisgate.Client = (*server)(nil)

// A client that ignores its context holds no dial for longer than twice the Timeout, and not when it returns.
func TestShareIsUsedWhileClientIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newServer(), hundred()
		hang := make(chan struct{})
		s.hang, s.deaf, o.Timeout = hang, true, time.Second
		var away []string
		o.Away = func(err error) { away = append(away, fmt.Sprint(err)) }
		f := newFleet(t, 1, s, o)
		start := time.Now()
		f.dial(t.Context(), 2*25, 0)
		const window = 1050 * time.Millisecond
		require.Equal(t, 2*o.Timeout+window+window, time.Since(start))
		s.set(func(s *server) { s.hang, s.deaf = nil, false })
		close(hang)
		time.Sleep(time.Minute)
		synctest.Wait() // Away is called in another goroutine
		require.Len(t, away, 2)
		require.Contains(t, away[0], "has not returned at the end of its context")
		require.Equal(t, "<nil>", away[1])
		f.dial(t.Context(), 100, 0)
	})
}
