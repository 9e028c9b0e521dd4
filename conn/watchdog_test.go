package conn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newWatchdog(limit time.Duration) (*Wire, *watchdog) {
	w := new(Wire)
	w.join(sleepy(0), Limits{WriteTimeout: limit})
	return w, &w.writing
}

func (d *watchdog) isArmed() bool {
	w := d.watch.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.armed
}

func TestWatchdogBitesExactlyAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWatchdog(10 * second)
		d.begin(w)
		sleep(t, 3*second)
		d.end()
		d.begin(w) // the timer runs since 3 s already
		sleep(t, 10*second-1)
		require.NoError(t, w.ended())
		sleep(t, 1)
		require.Equal(t, &SlowMessageError{"write", 10 * second}, w.ended())
		require.True(t, w.cut.Load())
		d.stop(w)
	})
}

func TestWatchdogTimesTheTurnsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWatchdog(10 * second)
		for range 5 {
			d.begin(w)
		}
		for range 4 {
			sleep(t, 9*second)
			d.end()
		}
		require.NoError(t, w.ended())
		sleep(t, 10*second)
		require.Error(t, w.ended())
		d.stop(w)
	})
}

func TestAQueuedWriteDoesNotRestartTheStuckWritesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWatchdog(10 * second)
		d.begin(w)
		sleep(t, 9*second)
		d.begin(w)
		sleep(t, second)
		require.Error(t, w.ended())
		d.stop(w)
	})
}

func TestWatchdogRestsWhenNobodyIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWatchdog(10 * second)
		require.Nil(t, d.watch.Load(), "made by the first begin")
		for range 3 {
			d.begin(w)
			d.end()
			require.True(t, d.isArmed())
			sleep(t, 10*second)
			require.False(t, d.isArmed())
		}
		require.NoError(t, w.ended())
		d.stop(w)
	})
}

// sleepy is a WebSocket that takes some time to close.
type sleepy time.Duration

func (s sleepy) abort()          { time.Sleep(time.Duration(s)) }
func (s sleepy) CloseNow() error { return nil }

// A tick that runs while the watch is stopped is waited for, and arms nothing.
func TestStopWaitsForTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWatchdog(10 * second)
		w.top = sleepy(2 * second)
		d.begin(w)
		sleep(t, 11*second)
		takes(t, second, func() { d.stop(w) })
		d.end()
		d.begin(w)
		require.False(t, d.isArmed())
		takes(t, 0, func() { d.stop(w) })
	})
}

func TestStopDisarmsTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWatchdog(10 * second)
		d.begin(w)
		d.stop(w)
		sleep(t, 20*second)
		require.NoError(t, w.ended())
	})
}

// Promise 8: no timer outlives a Framed.
func TestAClosedFramedHasNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pipe()
		c, err := NewFramed(client, Lines{}, nil)
		require.NoError(t, err)
		_, _ = server.Write([]byte("ha"))
		go c.Read(nil)
		require.NoError(t, c.Write(Message{}))
		synctest.Wait()
		require.True(t, c.wire.writing.isArmed())
		require.True(t, c.wire.message.isArmed())
		require.NoError(t, c.CloseNow())
		require.False(t, c.wire.writing.isArmed())
		require.False(t, c.wire.message.isArmed())
	})
}
