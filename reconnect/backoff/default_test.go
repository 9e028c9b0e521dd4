package backoff_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// These are the defaults that bench/DEFAULTS.md has chosen. If you change them, make its
// tables again.
func TestDefaultWaitsAsItSays(t *testing.T) {
	p := backoff.Default()
	require.Equal(t, []float64{2, 2.4, 2.4, 3.4, 5.1, 7.65, 10, 10}, waits(p, 8, backoff.ClassRetry, highest))
	require.Equal(t, []float64{0, 1, 1.2, 1.2, 1.2, 1.2}, waits(p, 6, backoff.ClassRetry, constant(0)), "refused at once: again in the second second")
	require.Equal(t, []float64{2, 2.4, 2.4, 3.4, 5.1, 7.65, 11.475, 15, 15}, waits(p, 9, backoff.ClassOverload, highest))
	require.Equal(t, []float64{0, 1.2, 1.2, 1.2}, waits(p, 4, backoff.ClassOverload, constant(0)))
	for _, class := range []backoff.Class{backoff.ClassRetry, backoff.ClassOverload} {
		require.Equal(t, waits(&backoff.Prompt{}, 99, class, highest), waits(p, 99, class, highest))
	}
}

// Promise 2: ten thousand clients that are dropped at one instant.
func TestDefaultSpreadsTheFirstRedial(t *testing.T) {
	const clients, even = 10_000, 10_000 / 20 // in each 100 ms of 2 s
	r, bins := seeded(), map[time.Duration]int{}
	for range clients {
		s, _ := backoff.Default().Next(backoff.Attempt{}, r)
		bins[s.Wait/(100*time.Millisecond)]++
	}
	require.Len(t, bins, 20)
	for bin, n := range bins {
		require.Less(t, n, even*5/4, "bin %d", bin)
	}
}

func TestALoneClientIsBackSoonAfterABlip(t *testing.T) {
	r, back := seeded(), make([]time.Duration, 10_000)
	for i := range back {
		var a backoff.Attempt
		for ; back[i] < time.Second; a.N++ {
			a.Elapsed = back[i]
			s, _ := backoff.Default().Next(a, r)
			back[i] += s.Wait
		}
	}
	slices.Sort(back)
	require.InDelta(t, 1.5, back[len(back)/2].Seconds(), 0.05, "median")
}

func TestNilIsTheDefaultPolicy(t *testing.T) {
	const everything = backoff.ClassOverload
	want := waits(backoff.Default(), 9, everything, highest)
	require.Equal(t, want, waits(nil, 9, everything, highest))
	require.Equal(t, want, waits(backoff.Limit(nil, 0, 0), 9, everything, highest))
	require.Equal(t, want, waits(backoff.Patient(nil, backoff.Patience{}, backoff.Patience{}), 9, everything, highest))
	require.Equal(t, waits(backoff.First(time.Second, &backoff.Prompt{}), 9, everything, highest), waits(backoff.First(time.Second, nil), 9, everything, highest))
}

func TestDefaultDoesNotAllocate(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { backoff.Default() }))
}
