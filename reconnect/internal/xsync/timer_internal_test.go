package xsync

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The timer goes off, and Stop comes before its goroutine.
func TestATimerThatWasStoppedCallsNothing(t *testing.T) {
	var timer Timer
	timer.Set(time.Hour, func() { t.Error("called after Stop") })
	require.True(t, timer.timer.Stop(), "this goroutine is that of the timer from now on")
	timer.Stop()
	timer.ring(func() { t.Error("called after Stop") })
	timer.Wait()
}

// The timer goes off, and Set comes before its goroutine: that call is the one.
func TestATimerThatGoesOffIsNotSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer Timer
		calls := 0
		f := func() { calls++ }
		timer.Set(time.Hour, f)
		require.True(t, timer.timer.Stop(), "this goroutine is that of the timer from now on")
		timer.Set(time.Hour, f)
		timer.ring(f)
		time.Sleep(2 * time.Hour)
		timer.Stop()
		timer.Wait()
		require.Equal(t, 1, calls)
	})
}

// The first call has not returned when the timer goes off again.
func TestATimerThatIsSetByItsFunctionRingsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer Timer
		calls := 0
		var f func()
		f = func() {
			if calls++; calls == 1 {
				timer.Set(time.Second, f)
				time.Sleep(time.Minute)
			}
		}
		timer.Set(time.Second, f)
		time.Sleep(time.Hour)
		timer.Stop()
		timer.Wait()
		require.Equal(t, 2, calls)
	})
}
