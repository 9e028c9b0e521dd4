package queueing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// rate is how many calls a second there are in these tests; unit is the CPUs that one
// time the normal load keeps busy.
const (
	rate = 4000
	unit = rate * 0.010317434
)

// steady is a scenario with a failure of five seconds from the first on, so that
// what the closed forms say of its course can be seen without its
// beginning.
func steady(t *testing.T, scenario string) queueing.Scenario {
	s, err := queueing.Find(scenario)
	require.NoError(t, err)
	s.Failure.From, s.Failure.To, s.Length = time.Second, 6*time.Second, 6*time.Second
	return s
}

// course returns the mean load and client success of the failure's last three
// seconds, in percent.
func course(t *testing.T, s queueing.Scenario, strategy string) (load, success float64) {
	return courseAt(t, rate, s, strategy)
}

// courseAt is course with so many calls per second.
func courseAt(t *testing.T, rps int, s queueing.Scenario, strategy string) (load, success float64) {
	y, err := s.Strategy(strategy)
	require.NoError(t, err)
	series, err := queueing.Collect(context.Background(), queueing.Setup{Scenario: s, Strategy: y, RPS: rps, Seed: 1}, 2, nil)
	require.NoError(t, err)
	ended := 0.0
	for _, r := range series.Rows {
		if r.T >= 3*time.Second {
			load += r.Amplification / 60
			ended += r.ClientDone
			success += r.ClientDone * r.ClientOK
		}
	}
	return load, success / ended
}

func TestInAnOpenLoopTheLoadIsTheAttemptsOrTheCapacity(t *testing.T) {
	for _, w := range []struct {
		scenario, strategy string
		want               float64
	}{
		{"any_retries_are_slowing_down_recovery", "no-retries", 100},
		{"retry_cb_or_budget_vs_exp_backoff", "retry-2x", 100 * 89 / unit}, // 2.15 is less than 3 attempts
		{"dp_vs_retry_budget", "retry-2x", 100 * 95 / unit},
		{"simple_retry_only", "retry-3x", 400},
		{"simple_retry_vs_backoff", "retry-3x-with-exp-backoff", 400},
		{"exponential_backoff_just_delays_problem_open_loop", "retry-3x-with-exp-backoff+jitter", 400},
		{"mfs", "retry-3x", 100 * 82 / unit},
	} {
		load, success := course(t, steady(t, w.scenario), w.strategy)
		require.InDelta(t, w.want, load, 0.015*w.want, w)
		require.Zero(t, success, w)
	}
}

func TestInAClosedLoopTheLoadIsWhatThePermitsAllow(t *testing.T) {
	const try = 4 * 0.01531743 // s: four round trips and services
	for _, w := range []struct {
		limit    float64
		strategy string
		holding  float64 // s
	}{
		{0.1, "retry-3x", try},
		{0.1, "retry-3x-with-exp-backoff", try + 0.7},
		{0.1, "retry-3x-with-exp-backoff+jitter", try + 0.35},
		{0.3, "retry-3x-with-exp-backoff+jitter", try + 0.35},
		{0.4, "retry-3x-with-exp-backoff+jitter", try + 0.35},
	} {
		s := steady(t, "simple_retry_vs_backoff_closed_loop")
		jitter, err := queueing.Find("jitter_vs_no_jitter")
		require.NoError(t, err)
		s.Strategies = append(s.Strategies, jitter.Strategies...)
		s.Capacity = 4.8 // so that only the permits count
		s.Limit = w.limit
		want := 400 * min(1, w.limit/w.holding)
		load, _ := course(t, s, w.strategy)
		require.InDelta(t, want, load, 0.03*want, w)
	}
}

func TestPartialFailure(t *testing.T) {
	const p, b = 0.3, 0.1
	s := steady(t, "retry_cb_or_budget_vs_exp_backoff_partial_failure")
	load, success := course(t, s, "retry-2x")
	require.InDelta(t, 100*(1+p+p*p), load, 2)
	require.InDelta(t, 100*(1-p*p*p), success, 0.3)

	load, success = course(t, s, "retry-budget-10%")
	require.InDelta(t, 100*(1+b*(1-p)), load, 2)
	require.InDelta(t, 100*(1-p)*(1+b*(1-p)), success, 0.5)
}

func TestAFailureOfUsersIsNotMendedByRetries(t *testing.T) {
	const p = 0.2
	s := steady(t, "circuit_breaker_vs_retry_budget/cb_threshold=50%/fail_rate=20%")
	for _, strategy := range []string{"retry-2x", "retry-2x-circuit-breaker-50%"} {
		load, success := course(t, s, strategy)
		require.InDelta(t, 100*(1+2*p), load, 2, strategy)
		require.InDelta(t, 100*(1-p), success, 0.5, strategy)
	}
}

// Lasting only if the queueing delay passes what the timeout leaves: 71 ms of 85 in
// the one scenario, more than 100 in the other.
func TestItStaysDownOnlyIfTheQueueOutgrowsTheTimeout(t *testing.T) {
	dp := collect(t, "dp_vs_retry_budget", "retry-2x")
	require.True(t, dp.Summary().IsBack)
	atEnd := dp.Rows[19] // the last 50 ms of the failure
	require.InDelta(t, 1637, atEnd.QueueMax, 0.15*1637)
	require.False(t, collect(t, "mfs", "retry-3x").Summary().IsBack)
}
