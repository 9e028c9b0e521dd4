package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestExponentialDoublesUpToTheCap(t *testing.T) {
	p := &backoff.Exponential{Jitter: backoff.JitterNone}
	require.Equal(t, []float64{1, 2, 4, 8, 16, 30, 30}, waits(p, 7, backoff.ClassRetry, constant(0)))
}

func TestExponentialFollowsItsFields(t *testing.T) {
	p := &backoff.Exponential{Base: 100 * time.Millisecond, Factor: 3, Cap: 5 * time.Second, Jitter: backoff.JitterNone}
	require.Equal(t, []float64{0.1, 0.3, 0.9, 2.7, 5, 5}, waits(p, 6, backoff.ClassRetry, constant(0)))
}

// Promise 2: cap first, jitter after.
func TestJitterIsDrawnAroundTheCappedDelay(t *testing.T) {
	for jitter, want := range map[backoff.Jitter][2][]float64{
		backoff.JitterFull:         {{0, 0, 0, 0, 0, 0}, {1, 2, 4, 8, 16, 30}},
		backoff.JitterEqual:        {{0.5, 1, 2, 4, 8, 15}, {1, 2, 4, 8, 16, 30}},
		backoff.JitterProportional: {{0.8, 1.6, 3.2, 6.4, 12.8, 24}, {1.2, 2.4, 4.8, 9.6, 19.2, 36}},
	} {
		p := &backoff.Exponential{Jitter: jitter}
		require.Equal(t, want[0], waits(p, 6, backoff.ClassRetry, constant(0)), "least, jitter %d", jitter)
		require.Equal(t, want[1], waits(p, 6, backoff.ClassRetry, highest), "most, jitter %d", jitter)
	}
}

func TestABaseAboveTheDefaultCapIsKept(t *testing.T) {
	p := &backoff.Exponential{Base: time.Minute, Jitter: backoff.JitterNone}
	require.Equal(t, []float64{60, 60}, waits(p, 2, backoff.ClassRetry, constant(0)))
}

func TestANegativeNumberOfWaitsCountsAsNone(t *testing.T) {
	s, _ := (&backoff.Exponential{Jitter: backoff.JitterNone}).Next(backoff.History{N: -1}, seeded())
	require.Equal(t, time.Second, s.Wait)
}

func TestSpreadIsAShareOrTheDefault(t *testing.T) {
	for spread, want := range map[float64][2]float64{1: {0, 2}, 1e300: {0, 2}, math.Inf(1): {0, 2}, math.NaN(): {0.8, 1.2}} {
		p := &backoff.Exponential{Jitter: backoff.JitterProportional, Spread: spread}
		require.Equal(t, want[0], waits(p, 1, backoff.ClassRetry, constant(0))[0], "%v", spread)
		require.Equal(t, want[1], waits(p, 1, backoff.ClassRetry, highest)[0], "%v", spread)
	}
}

func TestNegativeFieldsAreOff(t *testing.T) {
	none := backoff.JitterNone
	require.Equal(t, []float64{0, 0}, waits(&backoff.Exponential{Base: -1}, 2, backoff.ClassRetry, highest))
	require.Equal(t, []float64{1, 1}, waits(&backoff.Exponential{Factor: -1, Jitter: none}, 2, backoff.ClassRetry, highest))
	require.Equal(t, 512.0, waits(&backoff.Exponential{Cap: -1, Jitter: none}, 10, backoff.ClassRetry, highest)[9])
	spread := &backoff.Exponential{Spread: -1, Jitter: backoff.JitterProportional}
	require.Equal(t, []float64{1, 2}, waits(spread, 2, backoff.ClassRetry, highest))
}

var growing = &backoff.Exponential{OverloadCap: 5 * time.Minute, Jitter: backoff.JitterNone}

// With a fixed cap there is a size of herd from which a server never recovers.
func TestWaitsGrowOnPastTheCapAfterOverload(t *testing.T) {
	want := []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	require.Equal(t, want, waits(growing, 11, backoff.ClassOverload, constant(0)))
}

func TestCheapFailuresNeverRaiseTheWaitPastTheCap(t *testing.T) {
	a := backoff.History{N: 40, Overloads: 20, Verdict: backoff.Verdict{Class: backoff.ClassRetry}}
	s, _ := growing.Next(a, seeded())
	require.Equal(t, 30*time.Second, s.Wait)
}

func TestEachOverloadMovesTheCapOneStep(t *testing.T) {
	for overloads, want := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 5 * time.Minute} {
		a := backoff.History{N: 40, Overloads: overloads, Verdict: backoff.Verdict{Class: backoff.ClassOverload}}
		s, _ := growing.Next(a, seeded())
		require.Equal(t, want, s.Wait)
	}
}

func TestTheLongestDelayIsHalfOfWhatADurationHolds(t *testing.T) {
	a := backoff.History{N: 99, Overloads: 99, Verdict: backoff.Verdict{Class: backoff.ClassOverload}}
	for _, p := range []*backoff.Exponential{{Cap: -1}, {Cap: math.MaxInt64}, {OverloadCap: math.MaxInt64}} {
		p.Jitter = backoff.JitterNone
		s, _ := p.Next(a, seeded())
		require.Equal(t, time.Duration(1<<62-1), s.Wait)
	}
}

func TestOverloadCapIsOffByDefault(t *testing.T) {
	p := &backoff.Exponential{Jitter: backoff.JitterNone}
	require.Equal(t, 30.0, waits(p, 20, backoff.ClassOverload, constant(0))[19])
}
