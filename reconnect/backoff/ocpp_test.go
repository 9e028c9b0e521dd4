package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/policytest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// ocppWaits returns the first n waits of p in seconds.
func ocppWaits(p *backoff.OCPP, n int, source rand.Source) (seconds []float64) {
	for a := (backoff.History{}); a.N < n; a.N++ {
		s, _ := p.Next(a, rand.New(source))
		seconds = append(seconds, s.Wait.Round(1000).Seconds())
		a.Prev = s.Wait
	}
	return seconds
}

// OCPP 2.0.1, part 4, section 5.3: the wait before doubles with what was added to it, something new is
// added each time, and after the last doubling neither happens.
func TestOCPPDoublesWaitBeforeAndThenKeepsIt(t *testing.T) {
	p := &backoff.OCPP{WaitMinimum: 4 * time.Second, RepeatTimes: 2, RandomRange: time.Second}
	require.Equal(t, []float64{4, 8, 16, 16, 16}, ocppWaits(p, 5, constant(0)))
	require.Equal(t, []float64{5, 11, 23, 23, 23}, ocppWaits(p, 5, highest))
	for range 1000 {
		drawn := ocppWaits(p, 5, rand.NewPCG(rand.Uint64(), 1))
		require.InDelta(t, 4.5, drawn[0], 0.5)
		require.InDelta(t, 2*drawn[0]+0.5, drawn[1], 0.50001)
		require.InDelta(t, 2*drawn[1]+0.5, drawn[2], 0.50001)
		require.Equal(t, []float64{drawn[2], drawn[2]}, drawn[3:])
	}
}

func TestOCPPHasDefaultsAndCanBeOff(t *testing.T) {
	require.Equal(t, []float64{10, 20, 40, 80, 80, 80}, ocppWaits(&backoff.OCPP{}, 6, constant(0)))
	require.Equal(t, []float64{20, 50, 110, 230, 230, 230}, ocppWaits(&backoff.OCPP{}, 6, highest))
	require.Equal(t, []float64{20, 20, 20}, ocppWaits(&backoff.OCPP{RepeatTimes: -1}, 3, highest))
	require.Equal(t, []float64{0, 0, 0}, ocppWaits(&backoff.OCPP{WaitMinimum: -1, RandomRange: -1}, 3, highest))
	require.Equal(t, []float64{policytest.Forever}, ocppWaits(&backoff.OCPP{WaitMinimum: math.MaxInt64}, 1, highest))
	for range 100 {
		s, _ := (&backoff.OCPP{}).Next(backoff.History{N: math.MaxInt, Prev: -1}, seeded())
		require.Zero(t, s.Wait)
	}
}
