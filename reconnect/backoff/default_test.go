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
	require.Equal(t, []float64{2, 2.4, 2.4, 3.4, 5.1, 7.65, 11.475, 17.212, 25.819, 30, 30}, waits(p, 11, backoff.ClassRetry, highest))
	require.Equal(t, []float64{0, 1, 1.2, 1.2, 1.2, 1.2}, waits(p, 6, backoff.ClassRetry, constant(0)), "refused at once: again in the second second")
	dear := waits(p, 14, backoff.ClassOverload, highest)
	require.Equal(t, []float64{2, 2.4, 2.4, 3.4, 5.1, 7.65, 11.475, 17.212, 25.819, 38.728, 58.092, 60, 60, 60}, dear)
	require.Equal(t, []float64{0, 1.2, 1.2, 1.2}, waits(p, 4, backoff.ClassOverload, constant(0)))
	for _, class := range []backoff.Class{backoff.ClassRetry, backoff.ClassOverload} {
		require.Equal(t, waits(&backoff.Paced{}, 99, class, highest), waits(p, 99, class, highest))
	}
}

func TestDefaultHasPatience(t *testing.T) {
	for _, c := range []struct {
		overloads          int
		elapsed            time.Duration
		connect, handshake time.Duration
	}{
		{0, 24 * time.Hour, 15 * time.Second, 30 * time.Second},
		{1, 5 * time.Second, 15 * time.Second, 30 * time.Second},
		{1, 2 * time.Minute, 30 * time.Second, 8 * time.Minute},
		{2, 4 * time.Minute, time.Minute, 16 * time.Minute},
		{9, time.Hour, time.Minute, 4 * time.Hour},
		{9, 24 * time.Hour, time.Minute, 6 * time.Hour},
	} {
		s, _ := backoff.Default().Next(backoff.Attempt{N: c.overloads, Overloads: c.overloads, Elapsed: c.elapsed}, seeded())
		require.Equal(t, []time.Duration{c.connect, c.handshake}, []time.Duration{s.Connect, s.Handshake}, "%+v", c)
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
	require.Equal(t, waits(backoff.First(time.Second, &backoff.Paced{}), 9, everything, highest), waits(backoff.First(time.Second, nil), 9, everything, highest))
}

func TestDefaultDoesNotAllocate(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { backoff.Default() }))
}
