package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// seen is a policy that writes down each History.
type seen struct {
	attempts []backoff.History
	step     backoff.Step
}

func (s *seen) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	s.attempts = append(s.attempts, a)
	return s.step, true
}

// Promise 2: the first redial after a drop is jittered too.
func TestFirstDrawsItsOwnWaitOnce(t *testing.T) {
	p := backoff.First(5*time.Second, &backoff.Exponential{})
	require.Equal(t, []float64{5, 1, 2, 4}, waits(p, 4, backoff.ClassRetry, highest))
	require.Equal(t, []float64{0, 0}, waits(p, 2, backoff.ClassRetry, constant(0)))
}

func TestFirstHidesItsWaitFromThePolicyInside(t *testing.T) {
	var inside seen
	p := backoff.First(time.Second, &inside)
	for n := range 3 {
		p.Next(backoff.History{N: n, Prev: time.Duration(n), Overloads: n}, seeded())
	}
	want := []backoff.History{{N: 0, Prev: 0, Overloads: 1}, {N: 1, Prev: 2, Overloads: 2}}
	require.Equal(t, want, inside.attempts)
}

func TestFirstWithoutASpreadIsAtOnce(t *testing.T) {
	require.Equal(t, []float64{0, 1}, waits(backoff.First(-1, &backoff.Exponential{}), 2, backoff.ClassRetry, highest))
}

func TestLimitEndsAfterSoManyWaits(t *testing.T) {
	require.Len(t, waits(backoff.Limit(&backoff.Exponential{}, 3, 0), 10, backoff.ClassRetry, highest), 3)
	require.Len(t, waits(backoff.Limit(&backoff.Exponential{}, 0, 0), 10, backoff.ClassRetry, highest), 10)
}

func TestLimitDoesNotWaitForWhatComesTooLate(t *testing.T) {
	p := backoff.Limit(&seen{step: backoff.Step{Wait: 10 * time.Second}}, 0, time.Minute)
	for name, c := range map[string]struct {
		attempt backoff.History
		goesOn  bool
	}{
		"in time":           {backoff.History{Elapsed: 50 * time.Second}, true},
		"too late":          {backoff.History{Elapsed: 50*time.Second + 1}, false},
		"long ago":          {backoff.History{Elapsed: math.MaxInt64}, false},
		"told, in time":     {backoff.History{Elapsed: 20 * time.Second, Verdict: told(30 * time.Second)}, true},
		"told, too late":    {backoff.History{Elapsed: 20 * time.Second, Verdict: told(30*time.Second + 1)}, false},
		"raised, in time":   {backoff.History{MinWait: time.Minute}, true},
		"raised, too late":  {backoff.History{MinWait: time.Minute + 1}, false},
		"negative, in time": {backoff.History{Elapsed: math.MinInt64, MinWait: math.MinInt64, Verdict: told(math.MinInt64)}, true},
	} {
		_, ok := p.Next(c.attempt, seeded())
		require.Equal(t, c.goesOn, ok, name)
	}
}

func told(d time.Duration) backoff.Verdict {
	return backoff.Verdict{Class: backoff.ClassRetry, RetryAfter: d}
}

// starting is a policy that has limits on the first dial of all.
type starting struct{ seen }

func (*starting) Start(*rand.Rand) backoff.Step { return backoff.Step{Connect: 7 * time.Second} }

// A policy around another one passes these limits on.
func TestTheFirstDialHasTheLimitsOfThePolicyInside(t *testing.T) {
	for name, p := range map[string]backoff.Policy{
		"first": backoff.First(time.Second, &starting{}),
		"limit": backoff.Limit(&starting{}, 3, time.Minute),
		"slow":  backoff.WithSlow(&starting{}, backoff.SlowWait{}),
	} {
		s, ok := p.(interface{ Start(*rand.Rand) backoff.Step })
		require.True(t, ok, name)
		require.Equal(t, backoff.Step{Connect: 7 * time.Second}, s.Start(seeded()), name)
	}
}
