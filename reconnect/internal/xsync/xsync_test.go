package xsync_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASignalWakesAllThatWaitAndNobodyLater(t *testing.T) {
	var s xsync.Signal
	one, two := s.Wait(), s.Wait()
	s.Broadcast()
	<-one
	<-two
	select {
	case <-s.Wait():
		t.Error("a signal was remembered")
	default:
	}
}

// Whoever asks for the channel before it looks misses nothing.
func TestNoSignalIsLost(t *testing.T) {
	const rounds = 10_000
	var s xsync.Signal
	var sent, seen atomic.Int64
	var waiters sync.WaitGroup
	for range 2 {
		waiters.Go(func() {
			for n := int64(1); n <= rounds; {
				wake := s.Wait()
				if sent.Load() >= n {
					seen.Add(1)
					n++
					continue
				}
				<-wake
			}
		})
	}
	done := make(chan struct{})
	others := xsync.Go(func() { // Broadcasts that meet others
		for {
			select {
			case <-done:
				return
			default:
				s.Broadcast()
				runtime.Gosched() // without it one processor is this goroutine's for 10 ms a round
			}
		}
	})
	for range rounds {
		sent.Add(1)
		s.Broadcast()
		runtime.Gosched()
	}
	waiters.Wait()
	close(done)
	<-others.Done
	require.EqualValues(t, 2*rounds, seen.Load())
}

func TestAContextEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c xsync.Context
		require.NoError(t, c.Err())
		before := c.Done()
		derived, cancel := context.WithTimeout(&c, time.Hour)
		defer cancel()
		calls := 0
		c.AfterFunc(func() { calls++ })
		stop := c.AfterFunc(func() { t.Error("stopped, and called") })
		require.True(t, stop())
		require.False(t, stop(), "again")
		began := c.AfterFunc(func() {})
		_, ok := c.Deadline()
		require.False(t, ok)
		c.End()
		c.End()
		<-before
		<-c.Done()
		<-derived.Done()
		require.Equal(t, context.Canceled, c.Err())
		require.Equal(t, context.Canceled, derived.Err())
		synctest.Wait()
		require.Equal(t, 1, calls)
		require.False(t, began(), "it was called")
		late := make(chan struct{})
		require.False(t, xsync.AfterFunc(&c, func() { close(late) })())
		<-late
	})
}

func TestAChildEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent xsync.Context
		child, release := xsync.Child(&parent)
		other, early := xsync.Child(&parent)
		early()
		require.Equal(t, context.Canceled, other.Err())
		require.NoError(t, child.Err())
		parent.End()
		<-child.Done()
		require.Equal(t, context.Canceled, child.Err())
		release()
		release()
		late, release := xsync.Child(&parent)
		<-late.Done()
		release()
	})
}

// After release has returned, nothing runs any more because of the end of the parent.
func TestReleaseWaitsForTheEndOfTheChild(t *testing.T) {
	for range 1000 {
		var parent xsync.Context
		child, release := xsync.Child(&parent)
		parent.End()
		release()
		require.Error(t, child.Err())
	}
}

func TestAfterFuncIsForAnyContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan struct{})
	xsync.AfterFunc(ctx, func() { close(called) })
	cancel()
	<-called
}

// A context of the user's has values, and is no child of anything of ours.
func TestTheChildOfAnotherContextIsThatContext(t *testing.T) {
	child, release := xsync.Child(t.Context())
	release()
	require.Equal(t, t.Context(), child)
}

func TestAFlagShowsWhetherItIsUp(t *testing.T) {
	var f xsync.Flag
	require.False(t, f.IsUp())
	f.Raise()
	require.True(t, f.IsUp())
	<-f.Up()
	f.Lower()
	require.False(t, f.IsUp())
}

// Done's channel is closed also if the first call of Done comes after the end.
func TestTheDoneOfAnEndedContextIsClosed(t *testing.T) {
	var c xsync.Context
	c.End()
	<-c.Done()
	require.Equal(t, c.Done(), c.Done())
}

func TestATimerIsSetByItsOwnCallUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer xsync.Timer
		calls := 0
		var tick func()
		tick = func() { calls++; timer.Set(time.Second, tick) }
		timer.Set(time.Second, tick)
		time.Sleep(3500 * time.Millisecond)
		timer.Stop()
		timer.Wait()
		require.True(t, timer.Stopped())
		timer.Set(time.Second, tick)
		time.Sleep(time.Minute)
		require.Equal(t, 3, calls)
		start := time.Now()
		timer.Set(time.Hour, tick)
		timer.Wait()
		require.Equal(t, start, time.Now(), "there is no call to wait for")
	})
}

func TestWaitLastsUntilTheRunningCallOfATimerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer xsync.Timer
		start := time.Now()
		timer.Set(time.Second, func() { time.Sleep(time.Minute) })
		require.False(t, timer.Calling())
		time.Sleep(2 * time.Second)
		timer.Stop()
		require.True(t, timer.Calling())
		timer.Wait()
		require.False(t, timer.Calling())
		require.Equal(t, time.Minute+time.Second, time.Since(start))
	})
}

func TestACallThatDidNotReturnSaysSo(t *testing.T) {
	returned, left := xsync.Go(func() {}), xsync.Go(runtime.Goexit)
	<-returned.Done
	<-left.Done
	require.True(t, returned.Returned)
	require.False(t, left.Returned)
}

func TestAFlagStaysUpUntilItIsLowered(t *testing.T) {
	var f xsync.Flag
	early, late := f.Up(), f.Up()
	f.Raise()
	f.Raise()
	<-early
	<-late
	<-f.Up()
	f.Lower()
	select {
	case <-f.Up():
		t.Error("a flag is up that was lowered")
	default:
	}
}

func TestGuardCallsTheOtherFunctionIfTheFirstDoesNotReturn(t *testing.T) {
	calls := 0
	otherwise := func() { calls++ }
	xsync.Guard(func() {}, otherwise)
	require.Zero(t, calls)
	require.Panics(t, func() { xsync.Guard(func() { panic("x") }, otherwise) })
	<-xsync.Go(func() { xsync.Guard(runtime.Goexit, otherwise) }).Done
	require.Equal(t, 2, calls)
}

func TestATimerThatIsSetAgainRingsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer xsync.Timer
		start, calls := time.Now(), []time.Duration(nil)
		ring := func() { calls = append(calls, time.Since(start)) }
		timer.Set(time.Second, ring)
		timer.Set(time.Minute, ring)
		time.Sleep(time.Hour)
		timer.Set(time.Second, ring)
		timer.Stop()
		timer.Wait()
		require.Equal(t, []time.Duration{time.Minute}, calls)
	})
}

func TestInOrderGoesOnWhereACallDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		call := func(n int, exits bool) func() {
			return func() {
				calls = append(calls, n)
				if exits {
					runtime.Goexit()
				}
			}
		}
		go xsync.InOrder(call(1, false), call(2, true), call(3, true), call(4, false), call(5, true))
		synctest.Wait()
		require.Equal(t, []int{1, 2, 3, 4, 5}, calls)
		calls = nil
		xsync.InOrder()
		xsync.InOrder(call(1, false), call(2, false))
		require.Equal(t, []int{1, 2}, calls)
	})
}
