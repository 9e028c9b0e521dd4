package xsync_test

import (
	"context"
	"runtime"
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
		c.End()
		c.End()
		<-before
		<-c.Done()
		<-derived.Done()
		require.Equal(t, context.Canceled, c.Err())
		require.Equal(t, context.Canceled, derived.Err())
		synctest.Wait()
		require.Equal(t, 1, calls)
		late := make(chan struct{})
		require.False(t, xsync.AfterFunc(&c, func() { close(late) })())
		<-late
	})
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
	})
}

func TestWaitLastsUntilTheRunningCallOfATimerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer xsync.Timer
		start := time.Now()
		timer.Set(time.Second, func() { time.Sleep(time.Minute) })
		time.Sleep(2 * time.Second)
		timer.Stop()
		timer.Wait()
		require.Equal(t, time.Minute+time.Second, time.Since(start))
	})
}

func TestACallThatDidNotReturnSaysSo(t *testing.T) {
	returned, left := xsync.Go(func() {}), xsync.Go(runtime.Goexit)
	<-returned.Done()
	<-left.Done()
	require.True(t, returned.Returned())
	require.False(t, left.Returned())
}

func TestAFlagStaysUpUntilItIsLowered(t *testing.T) {
	var f xsync.Flag
	early := f.Up()
	f.Raise()
	f.Raise()
	<-early
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
	<-xsync.Go(func() { xsync.Guard(runtime.Goexit, otherwise) }).Done()
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
