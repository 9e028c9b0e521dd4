package classic_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestDecorrelatedDrawsUpToThreeTimesTheWaitBefore(t *testing.T) {
	p := &classic.Decorrelated{}
	require.Equal(t, []float64{3, 9, 27, 30, 30}, waits(p, 5, highest))
	require.Equal(t, []float64{1, 1, 1}, waits(p, 3, constant(0)), "never below Base")
}

func TestDecorrelatedGrowsWhereThreeTimesOverflows(t *testing.T) {
	s, _ := (&classic.Decorrelated{Cap: -1}).Next(backoff.History{N: 1, Prev: 1 << 61}, rand.New(highest))
	require.Equal(t, time.Duration(1<<62-2), s.Wait)
	s, _ = (&classic.Decorrelated{Cap: -1}).Next(backoff.History{N: 1, Prev: 1 << 60}, rand.New(highest))
	require.Equal(t, time.Duration(3<<60-1), s.Wait, "three times 1<<60 does not overflow")
}

func TestDecorrelatedStartsAfreshAtItsFirstWait(t *testing.T) {
	s, _ := (&classic.Decorrelated{}).Next(backoff.History{N: 0, Prev: time.Hour}, seeded())
	require.Less(t, s.Wait, 3*time.Second)
}

// Promise 2.
func TestNoAtomLeavesNoMassAtTheCap(t *testing.T) {
	for _, noAtom := range []bool{true, false} {
		p, r, atCap := &classic.Decorrelated{NoAtom: noAtom}, seeded(), 0
		a := backoff.History{N: 1}
		for range 1000 {
			s, _ := p.Next(a, r)
			a.Prev = s.Wait
			if s.Wait == 30*time.Second {
				atCap++
			}
		}
		require.Equal(t, noAtom, atCap == 0)
	}
}

func TestNormalWaitsFirstWithoutNoise(t *testing.T) {
	s, _ := (&classic.Normal{}).Next(backoff.History{}, seeded())
	require.Equal(t, 100*time.Millisecond, s.Wait)
}

func TestNormalTakesWhatIsNoNumberForTheDefault(t *testing.T) {
	s, _ := (&classic.Normal{Jitter: math.NaN()}).Next(backoff.History{N: 1, Prev: time.Second}, seeded())
	require.InDelta(t, 2, s.Wait.Seconds(), 1)
}

func TestNormalGrowsFromTheWaitBefore(t *testing.T) {
	p := &classic.Normal{Min: time.Second, Factor: 1.5, Jitter: -1, Max: 4 * time.Second}
	require.Equal(t, []float64{1, 1.5, 2.25, 3.375, 4, 4}, waits(p, 6, constant(0)))
}

// The noise comes after the cap, so that a wait may exceed Max.
func TestNormalMayExceedMaxByItsNoise(t *testing.T) {
	p, r, above := &classic.Normal{Max: time.Second}, seeded(), 0
	for range 1000 {
		if s, _ := p.Next(backoff.History{N: 9, Prev: time.Second}, r); s.Wait > time.Second {
			above++
		}
	}
	require.InDelta(t, 500, above, 100)
}

// With such noise about half of the draws are longer than the longest wait of all, and about half are below 0.
func TestNormalDoesNotOverflow(t *testing.T) {
	p, r := &classic.Normal{Max: -1, Jitter: 100}, seeded()
	drawn := map[time.Duration]int{}
	for range 1000 {
		s, ok := p.Next(backoff.History{N: 1, Prev: 1 << 61}, r)
		require.True(t, ok)
		require.GreaterOrEqual(t, s.Wait, time.Duration(0))
		drawn[s.Wait]++
	}
	require.InDelta(t, 500, drawn[1<<62-1], 60)
	require.InDelta(t, 500, drawn[0], 60)
}

func TestNormalRecoversFromADrawBelowZero(t *testing.T) {
	p, r, zero := &classic.Normal{Jitter: 1}, seeded(), 0
	for range 1000 {
		if s, _ := p.Next(backoff.History{N: 1, Prev: 0}, r); s.Wait == 0 {
			zero++
		}
	}
	require.InDelta(t, 159, zero, 60, "P(z < -1) = 15.9 %")
}
