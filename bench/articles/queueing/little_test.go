package queueing_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// A run begins and ends without calls: the time that was spent under way, added up by counting the calls
// at each moment, is that which was spent by the calls, added up by call, to the nanosecond.
func TestLittlesLawIsExactOverAWholeRun(t *testing.T) {
	for _, s := range slices.Concat(queueing.Scenarios(), queueing.MoreScenarios()) {
		for _, y := range s.Strategies {
			r, err := queueing.Run(queueing.Setup{Scenario: s, Strategy: y, RPS: 500, Seed: 5})
			require.NoError(t, err)
			require.Equal(t, r.Total.Arrived, r.Total.Ended)
			require.Equal(t, r.Total.InSystem, r.Total.UnderWay, "%s: %s", s.Name, y.Name)
			require.Positive(t, r.Total.UnderWay)
		}
	}
}

// Where as many calls come as go, L = lambda W holds for each half of a second, with a queue and without, in
// a failure and in calls that wait for a permit.
func TestLittlesLawHoldsWhereAsMuchComesAsGoes(t *testing.T) {
	for _, w := range []struct {
		scenario, strategy string
		calls              float64 // under way, as the closed forms have it
	}{
		{"simple_retry_only", "retry-3x", rate * 4 * 0.01531743},
		{"simple_retry_vs_backoff", "retry-3x-with-exp-backoff", rate * (4*0.01531743 + 0.7)},
		{"simple_retry_vs_backoff", "retry-2x-with-exp-backoff+jitter", rate * (3*0.01531743 + 0.15)},
	} {
		s := steady(t, w.scenario)
		s.Capacity = 5 // so that no queue grows
		jitter, err := queueing.Find("retry_cb_or_budget_vs_exp_backoff")
		require.NoError(t, err)
		s.Strategies = append(s.Strategies, jitter.Strategies...)
		y, err := s.Strategy(w.strategy)
		require.NoError(t, err)
		series, err := queueing.Collect(t.Context(), queueing.Setup{Scenario: s, Strategy: y, RPS: rate, Seed: 1, Bucket: 500 * time.Millisecond}, 2, nil)
		require.NoError(t, err)
		for _, r := range series.Rows {
			if r.T >= 2*time.Second && r.T < 5500*time.Millisecond {
				require.InEpsilon(t, w.calls, r.UnderWay, 0.05, "%s at %v", w.strategy, r.T)
				require.InEpsilon(t, r.UnderWay, r.Little(), 0.05, "%s at %v", w.strategy, r.T)
			}
		}
	}
}

// While a queue grows, calls that end have come when it was shorter, and while it is worked off, when it was
// longer: the two sides of the law part, and meet again when the queue is gone.
func TestLittlesLawPartsWhileAQueueGrows(t *testing.T) {
	s := mustFind(t, "jitter_vs_no_jitter")
	y, err := s.Strategy("retry-3x-with-exp-backoff")
	require.NoError(t, err)
	s.Length = 2500 * time.Millisecond
	series, err := queueing.Collect(t.Context(), queueing.Setup{Scenario: s, Strategy: y, RPS: rate, Seed: 1, Bucket: 100 * time.Millisecond}, 2, nil)
	require.NoError(t, err)
	at := func(t time.Duration) (under, little float64) {
		r := &series.Rows[t/(100*time.Millisecond)]
		return r.UnderWay, r.Little()
	}
	under, little := at(300 * time.Millisecond)
	require.InEpsilon(t, under, little, 0.05, "before the failure")
	require.InEpsilon(t, rate*0.0154, under, 0.05)
	under, little = at(900 * time.Millisecond)
	require.True(t, math.IsNaN(little) || little < under/2, "nearly no call ends: %v of %v", little, under)
	under, little = at(1400 * time.Millisecond)
	require.Greater(t, little, 1.5*under, "calls that end have waited long")
	under, little = at(2300 * time.Millisecond)
	require.InEpsilon(t, under, little, 0.1, "all is over")
}
