package xsync

import (
	"testing"
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
