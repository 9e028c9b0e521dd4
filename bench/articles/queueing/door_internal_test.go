package queueing

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The formula of the gradient controller, step by step: minRTT is 10 ms, with its buffer 12.5.
func TestTheDoorFollowsTheGradient(t *testing.T) {
	d := newDoor(&Strategy{Adaptive: true}, 206, 10_000, latency)
	require.Equal(t, 1000.0, d.limit, "in the quiet before")
	now := int64(0)
	window := func(took ...int64) float64 {
		for _, x := range took {
			d.sample(now, x)
		}
		now += int64(updateEvery)
		d.admit(now, 0)
		return d.limit
	}
	require.Equal(t, math.Floor(500+math.Sqrt(500)), window(90e6, 10e6, 80e6), "never less than half, by the median")
	require.Equal(t, math.Floor(522*12.5/20+math.Sqrt(522*12.5/20)), window(20e6))
	require.Equal(t, 344.0, window(), "without samples it stays")
	require.Equal(t, math.Floor(430+math.Sqrt(430)), window(10e6), "a quarter more is allowed for")
	require.Equal(t, math.Floor(900+math.Sqrt(900)), window(1e6), "never more than twice")
	require.Equal(t, 1000.0, window(1e6), "nor more than its most")
	for range 20 {
		window(1e9)
	}
	require.Equal(t, 3.0, d.limit, "nor less than three")
	require.True(t, d.admit(now, 2))
	require.False(t, d.admit(now, 3))
}

func TestAFixedDoorHoldsSoManyTimesTheCPUs(t *testing.T) {
	d := newDoor(&Strategy{Concurrency: 1.5}, 10, 1000, latency)
	d.sample(0, 1e9)
	require.True(t, d.admit(1e9, 14))
	require.False(t, d.admit(1e9, 15))
	require.Nil(t, newDoor(&Strategy{}, 10, 1000, latency))
}

// Five errors in a row, one host at a time, and each time longer.
func TestAHostIsEjectedAfterErrorsInARow(t *testing.T) {
	h := newHosts(3, 5)
	r := rand.New(rand.NewPCG(1, 2))
	fail := func(n uint8, times int, now int64) {
		for range times {
			h.note(n, false, now)
		}
	}
	out := func(now int64) (seen [3]bool) {
		for range 100 {
			seen[h.pick(now, r)] = true
		}
		return seen
	}
	fail(0, 4, 0)
	h.note(0, true, 0)
	fail(0, 4, 0)
	require.Equal(t, [3]bool{true, true, true}, out(0), "a success between them")
	fail(0, 1, 0)
	require.Equal(t, [3]bool{false, true, true}, out(99e6))
	fail(1, 9, 99e6)
	require.Equal(t, [3]bool{false, true, true}, out(99e6), "one at a time")
	require.Equal(t, [3]bool{true, true, true}, out(100e6))
	fail(0, 5, 100e6)
	require.Equal(t, [3]bool{false, true, true}, out(299e6), "200 ms the second time")
	require.Equal(t, [3]bool{true, true, true}, out(300e6))
}
