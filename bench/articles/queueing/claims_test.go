package queueing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests hold the scenarios to claims of the article that neither the closed forms nor the
// calibration cover.

func TestPropagatedDeadlinesRaiseTheLoadAndShortenTheQueue(t *testing.T) {
	plain, propagated := collect(t, "dp_vs_retry_budget", "retry-2x"), collect(t, "dp_vs_retry_budget", "retry-2x-deadline-propagation")
	budget := collect(t, "dp_vs_retry_budget", "retry-budget-10%")
	require.Greater(t, propagated.Summary().Peak, plain.Summary().Peak+30)
	require.Less(t, propagated.Summary().Back, plain.Summary().Back)
	require.LessOrEqual(t, budget.Summary().Back, propagated.Summary().Back)
	var long, short float64
	for i := range plain.Rows {
		long, short = max(long, plain.Rows[i].QueueMax), max(short, propagated.Rows[i].QueueMax)
	}
	require.Less(t, short, long)
}

func TestABreakerAtTenPercentIsACardiogram(t *testing.T) {
	s := collect(t, "circuit_breaker_vs_retry_budget/cb_threshold=10%/fail_rate=20%", "retry-2x-circuit-breaker-10%")
	beats, low := 0, true
	for i, load := range s.Fine {
		at := time.Duration(i) * 20 * time.Millisecond
		switch {
		case at < s.Scenario.Failure.From || at >= s.Scenario.Failure.To:
		case low && load > 50:
			beats, low = beats+1, false
		case load < 15:
			low = true
		}
	}
	require.GreaterOrEqual(t, beats, 3)
	require.Less(t, s.Summary().Success, 35.0, "of the users only 20 % fail")
}

func TestRetriesDelayRecovery(t *testing.T) {
	const scenario = "any_retries_are_slowing_down_recovery"
	none := collect(t, scenario, "no-retries").Summary()
	require.True(t, none.IsBack)
	require.Equal(t, 1500*time.Millisecond, none.Back)
	for _, strategy := range []string{"retry-2x", "retry-2x-with-exp-backoff+jitter"} {
		y := collect(t, scenario, strategy).Summary()
		require.True(t, !y.IsBack || y.Back > none.Back+300*time.Millisecond, strategy)
	}
}

func TestALocalBudgetHasABurstForEachClient(t *testing.T) {
	const scenario = "retry_cb_budget_global_vs_local"
	require.Less(t, collect(t, scenario, "retry-budget-10%-global").Summary().Peak, 120.0)
	require.Greater(t, collect(t, scenario, "retry-budget-10%-local").Summary().Peak, 250.0)
}

func TestAPermitsQueueLosesNobody(t *testing.T) {
	s := collect(t, "jitter_vs_no_jitter", "retry-3x-with-exp-backoff")
	waiting := 0.0
	for _, r := range s.Rows {
		waiting = max(waiting, r.Unmet)
	}
	require.Greater(t, waiting, 5000.0, "they wait while success of those that end is 100 %")
	require.Greater(t, s.Success, 99.0)
	require.InDelta(t, 0, s.Rows[len(s.Rows)-1].Unmet, 300, "and all get their turn")
}
