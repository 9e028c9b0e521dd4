package lab

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThePaceIsEvenAndLateOnesMayMakeUp(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPace(100)
	admitted := 0
	for range 1000 { // a second, in which one connection comes each millisecond
		if p.wait(now) == 0 {
			p.admit(now)
			admitted++
		}
		now = now.Add(time.Millisecond)
	}
	require.Equal(t, 102, admitted, "100, and the slack")

	now = now.Add(time.Hour)
	for admitted = 0; p.wait(now) == 0; admitted++ {
		p.admit(now)
	}
	require.Equal(t, 3, admitted, "an hour of rest is no credit")
	require.Equal(t, 10*time.Millisecond, p.wait(now))

	unlimited := newPace(0)
	unlimited.admit(now)
	require.Zero(t, unlimited.wait(now))
}

func TestTooFewFilesAreSaidInNumbers(t *testing.T) {
	require.NoError(t, checkFiles("a herd of 800", 800, 1, 1000))
	err := checkFiles("a herd of 801", 801, 1, 1000)
	require.EqualError(t, err, "a herd of 801 needs 1001 open files in one process, and 1000 are allowed here: take at most 800, or raise the limit (ulimit -Hn 1001, as root)")
	require.ErrorContains(t, checkFiles("a herd of 1", 1, 1, 100), "take at most 0")
	require.ErrorContains(t, checkFiles("a storm of 200 clients", 200, 5, 1000), "needs 1200 open files in one process, and 1000 are allowed here: take at most 160")
}

// A storm's seconds, from after the server goes on.
func seconds(good ...int) *stormRun {
	r := &stormRun{resumed: 10 * time.Second}
	for i, ok := range good {
		r.seconds = append(r.seconds, StormSecond{At: time.Duration(11+i) * time.Second, OK: ok, TimedOut: 100 - ok})
	}
	return r
}

func TestAStormIsOverWhenAllGoesWellUntilTheEnd(t *testing.T) {
	well := func(good ...int) (time.Duration, bool) { return seconds(good...).well() }
	ten := []int{100, 100, 100, 100, 100, 100, 100, 100, 100, 100}
	_, ok := well(ten[:9]...)
	require.False(t, ok, "not for long enough")
	back, ok := well(append([]int{0, 30}, ten...)...)
	require.True(t, ok)
	require.Equal(t, 2*time.Second, back)
	_, ok = well(append(append([]int{}, ten...), 30)...)
	require.False(t, ok, "it was, but is not any more")
	_, ok = seconds().well()
	require.False(t, ok)
	silent := seconds(ten...)
	for i := range silent.seconds {
		silent.seconds[i].OK = 0
		silent.seconds[i].TimedOut = 0
	}
	_, ok = silent.well()
	require.False(t, ok, "nothing ended at all")
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, pause(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))
	})
}
