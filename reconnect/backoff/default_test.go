package backoff_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestDefaultWaitsAsItSays(t *testing.T) {
	cheap := []float64{2, 1, 2, 4, 8, 16, 30, 30}
	require.Equal(t, cheap, waits(backoff.Default(), 8, backoff.ClassRetry, highest))
	dear := []float64{2, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	require.Equal(t, dear, waits(backoff.Default(), 12, backoff.ClassOverload, highest))
}

func TestDefaultHasPatience(t *testing.T) {
	for overloads, want := range [][2]time.Duration{{10, 30}, {20, 60}, {40, 120}, {60, 240}, {60, 300}, {60, 300}} {
		s, _ := backoff.Default().Next(backoff.Attempt{Overloads: overloads}, seeded())
		require.Equal(t, want, [2]time.Duration{s.Connect / time.Second, s.Handshake / time.Second})
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
	require.Equal(t, want, waits(backoff.First(time.Second, nil), 10, everything, highest)[1:])
}

func TestDefaultDoesNotAllocate(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { backoff.Default() }))
}
