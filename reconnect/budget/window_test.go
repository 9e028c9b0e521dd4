package budget_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// send takes n events from w as early as it lets them, from at on, and returns when they
// happened.
func send(w *budget.Window, at time.Time, n int) (sent []time.Time) {
	for range n {
		at = w.At(at)
		w.Take(at)
		sent = append(sent, at)
	}
	return sent
}

func TestWindowAdmitsNAtOnceAndTheNextWhenTheFirstHasLeft(t *testing.T) {
	start := newClock().now
	w := budget.Window{N: 3, Per: time.Second}
	var after []time.Duration
	for _, at := range send(&w, start, 7) {
		after = append(after, at.Sub(start))
	}
	require.Equal(t, []time.Duration{0, 0, 0, time.Second, time.Second, time.Second, 2 * time.Second}, after)
}

// As many may happen as At lets through one after the other.
func TestWindowSaysHowManyMayHappen(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := budget.Window{N: 1 + r.IntN(9), Per: time.Second}
		now := newClock().now
		for range 50 {
			now = now.Add(time.Duration(r.Int64N(int64(700 * time.Millisecond))))
			free := w.Free(now)
			require.Equal(t, free > 0, w.At(now).Equal(now), "seed %d", seed)
			for range r.IntN(free + 1) {
				require.Equal(t, now, w.At(now))
				w.Take(now)
				free--
			}
			require.Equal(t, free, w.Free(now), "seed %d", seed)
		}
	}
}

// An event leaves the interval when Per is over, and not a nanosecond earlier.
func TestAnEventCountsForAllOfTheInterval(t *testing.T) {
	now := newClock().now
	w := budget.Window{N: 1, Per: time.Second}
	w.Take(now)
	require.Zero(t, w.Free(now.Add(time.Second-1)))
	require.Equal(t, 1, w.Free(now.Add(time.Second)))
}

// The longest interval of all is one too.
func TestAWindowMayLastForEver(t *testing.T) {
	now := newClock().now
	w := budget.Window{N: 1, Per: math.MaxInt64}
	w.Take(now)
	now = now.Add(time.Second)
	w.Take(now)
	require.Zero(t, w.Free(now))
	require.Greater(t, w.At(now).Sub(now), 100*365*24*time.Hour)
}

// At asks and does not take, whatever it answers.
func TestAskingAWindowTakesNothing(t *testing.T) {
	now := newClock().now
	w := budget.Window{N: 1, Per: time.Second}
	for range 5 {
		require.Equal(t, now, w.At(now))
	}
	w.Take(now)
	require.Equal(t, now.Add(time.Second), w.At(now.Add(time.Millisecond)))
	require.Equal(t, now.Add(time.Second), w.At(now.Add(time.Millisecond)))
}

// An event that did not ask counts, and so pushes the next one out.
func TestAnEventThatDidNotAskCounts(t *testing.T) {
	now := newClock().now
	w := budget.Window{N: 2, Per: time.Second}
	for i := range 3 {
		w.Take(now.Add(time.Duration(i) * 100 * time.Millisecond))
	}
	require.Equal(t, now.Add(1100*time.Millisecond), w.At(now.Add(300*time.Millisecond)))
}

// Whatever happens, no interval of the length Per has more than N events. Twice as many in
// a short burst is what a token bucket does.
func TestNoIntervalHasMoreThanNEvents(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := budget.Window{N: 1 + r.IntN(12), Per: time.Second}
		now := newClock().now
		var sent []time.Time
		for range 100 {
			now = now.Add(time.Duration(r.Int64N(int64(400*time.Millisecond))) * time.Duration(r.IntN(2)))
			at := w.At(now)
			require.False(t, at.Before(now))
			if at.After(now.Add(time.Second)) {
				t.Fatalf("seed %d: at %v an event must wait until %v", seed, now, at)
			}
			w.Take(at)
			now = at
			sent = append(sent, at)
		}
		for i := range sent[w.N:] {
			require.GreaterOrEqual(t, sent[i+w.N].Sub(sent[i]), time.Second, "seed %d: events %d to %d", seed, i, i+w.N)
		}
	}
}

func TestAWindowWithoutALimitAdmitsAll(t *testing.T) {
	now := newClock().now
	var w budget.Window
	for range 100 {
		require.Equal(t, now, w.At(now))
		w.Take(now)
	}
	require.NoError(t, w.Validate())
}

func TestWindowNamesWhatIsWrong(t *testing.T) {
	for want, w := range map[string]budget.Window{
		"budget: Window.N is negative: -1":                 {N: -1, Per: time.Second},
		"budget: Window.Per must be positive, and is 0s":   {N: 1},
		"budget: Window.Per must be positive, and is -1ns": {N: 1, Per: -1},
		"budget: Window.Per without N":                     {Per: time.Second},
	} {
		require.EqualError(t, w.Validate(), want)
	}
}

// The memory of a window is N instants of 8 bytes, and none before the first event.
func TestAWindowThatIsFullAllocatesNothing(t *testing.T) {
	now := newClock().now
	w := budget.Window{N: 1000, Per: time.Second}
	require.Zero(t, testing.AllocsPerRun(100, func() { w.At(now) }))
	send(&w, now, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = w.At(now)
		w.Take(now)
	}))
}

func TestAWindowWithoutALimitHasRoomForAll(t *testing.T) {
	require.Equal(t, math.MaxInt, new(budget.Window).Free(newClock().now))
}
