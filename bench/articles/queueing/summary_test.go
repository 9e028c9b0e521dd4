package queueing_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

var nan = math.NaN()

// series has a failure from 20 to 60 ms, a load of 100 % and these shares of success, a
// bucket each.
func series(answered ...float64) *queueing.Series {
	s := &queueing.Series{Answered: answered, Fine: slices.Repeat([]float64{100}, len(answered)), Bucket: queueing.FineBucket}
	s.Scenario.Failure.From, s.Scenario.Failure.To = 20*time.Millisecond, 60*time.Millisecond
	s.Scenario.Length = time.Duration(len(answered)) * queueing.FineBucket
	return s
}

func TestSuccessIsBackWhenErrorsAreGoneForGood(t *testing.T) {
	for _, w := range []struct {
		answered []float64
		want     time.Duration
		back     bool
	}{
		{[]float64{100, 0, 0, 95, 96, 100}, 60, true},
		{[]float64{100, 0, 0, 94.9, 96, 100}, 80, true},
		{[]float64{100, 0, 0, 96, 50, 100}, 100, true},
		{[]float64{100, 100, 100, 100, 100, 100}, 60, true},
		{[]float64{100, 0, 0, 100, nan, 100}, 60, true},
		{[]float64{100, 0, 0, nan, 100, nan}, 80, true},
		{[]float64{100, 0, 0, 100, 100, 40}, 0, false},
		{[]float64{100, 0, 0, nan, nan, nan}, 0, false},
	} {
		y := series(w.answered...).Summary()
		require.Equal(t, w.back, y.SuccessIsBack, w)
		if w.back {
			require.Equal(t, w.want*time.Millisecond, y.SuccessBack, w)
		}
		require.Equal(t, 60*time.Millisecond, y.Back, "the load does not follow the success")
	}
}

func TestTheTimeUpCountsStepsInWhichCallsSucceed(t *testing.T) {
	require.Equal(t, 50.0, series(100, 0, 94, 95).Summary().Up)
	require.Equal(t, 50.0, series(100, nan, nan, 100).Summary().Up, "nobody has an answer")
	require.Equal(t, 100.0, series(100, 99.5, nan, nan).Summary().Up, "the calls have run out")
	require.True(t, math.IsNaN(series(nan, nan).Summary().Up))
}

func TestASummaryHasTheWorstOfTheLatencyAndTheQueue(t *testing.T) {
	s := series(100, 100)
	s.Rows = []queueing.Row{
		{ClientDone: 100, P50: 14, P99: 35, QueueMax: 7, Amplification: 300, ServerOK: 50},
		{ClientDone: 0, P50: nan, P99: nan, QueueMax: 90, Amplification: 0, ServerOK: nan},
		{ClientDone: 10, P50: 100, P99: 31, QueueMax: 0, Amplification: 100, ServerOK: 100},
	}
	y := s.Summary()
	require.Equal(t, []float64{100, 35, 90, 62.5}, []float64{y.P50, y.P99, y.Queue, y.ServerUp})
	require.True(t, math.IsNaN(series(100).Summary().P99), "no row: no latency")
}

// The errors of the article's run are gone at 2.3 s with retries, and at once without. A tenth
// of its load is as good as all of it, since the queue's length follows the load.
func TestErrorsAreGoneAsLateAsInTheArticle(t *testing.T) {
	s, err := queueing.Find("any_retries_are_slowing_down_recovery")
	require.NoError(t, err)
	for name, want := range map[string]float64{"no-retries": 1.5, "retry-2x": 2.3, "retry-2x-with-exp-backoff+jitter": 2.2} {
		y, err := s.Strategy(name)
		require.NoError(t, err)
		series, err := queueing.Collect(t.Context(), queueing.Setup{Scenario: s, Strategy: y, RPS: 30_000, Seed: 1}, 1, nil)
		require.NoError(t, err)
		sum := series.Summary()
		require.True(t, sum.SuccessIsBack, name)
		require.InDelta(t, want, sum.SuccessBack.Seconds(), 0.101, name)
	}
}

func TestFirstTriesAndRetriesAddUpToTheLoad(t *testing.T) {
	for _, scenario := range []string{"simple_retry_only", "mfs", "dp_vs_retry_budget"} {
		s := collect(t, scenario, mustFind(t, scenario).Strategies[0].Name)
		for _, r := range s.Rows {
			require.InDelta(t, r.Amplification, r.FirstOK+r.FirstFailed+r.RetryOK+r.RetryFailed, 1e-9)
		}
	}
}

// Each call has one first try, and ends well exactly once if at all.
func TestEachCallHasOneFirstTryAndAtMostOneSuccess(t *testing.T) {
	for _, s := range queueing.Scenarios() {
		for _, y := range s.Strategies {
			r, err := queueing.Run(queueing.Setup{Scenario: s, Strategy: y, RPS: 1000, Seed: 3})
			require.NoError(t, err)
			require.Equal(t, r.Total.Succeeded, r.Total.FirstOK+r.Total.RetryOK, "%s: %s", s.Name, y.Name)
			require.LessOrEqual(t, r.Total.First, r.Total.Arrived, "a breaker refuses some")
			if y.Name == "no-retries" || y.Name == "retry-3x" {
				require.Equal(t, r.Total.Arrived, r.Total.First, "%s: %s", s.Name, y.Name)
			}
		}
	}
}

// In a failure of everything four tries are a first try and three retries, and none succeeds.
func TestInAFailureTheTriesAreFailuresOneFirstToThreeRetries(t *testing.T) {
	s := collect(t, "simple_retry_only", "retry-3x")
	at := s.Rows[15] // 0.75 s, in the middle of it
	require.InDelta(t, 100, at.FirstFailed, 5)
	require.InDelta(t, 300, at.RetryFailed, 10)
	require.Zero(t, at.FirstOK+at.RetryOK)
}

// The queue that stays after the failure is served in vain.
func TestAServerThatStaysOverloadedSucceedsForNobody(t *testing.T) {
	s := collect(t, "mfs", "retry-3x")
	last := s.Rows[len(s.Rows)-2]
	require.Greater(t, last.ServerOK, 99.0)
	require.Zero(t, last.FirstOK+last.RetryOK)
	require.Greater(t, last.RetryFailed, last.FirstFailed)
	require.Less(t, s.Summary().Up, 35.0)
}

func mustFind(t *testing.T, scenario string) queueing.Scenario {
	s, err := queueing.Find(scenario)
	require.NoError(t, err)
	return s
}
