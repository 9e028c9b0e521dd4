package queueing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// The tokens that a call adds and those that a retry takes meet when so many retries per call are
// made: a success of a first try adds 1 and a retry that fails takes its price, which one that
// succeeds has back. Where that is more than retry-2x wants, all retries pass.
func TestPresetsRetryAsOftenAsTheirTokensComeIn(t *testing.T) {
	const p = 0.3
	s := steady(t, "budget_presets_partial_failure")
	for strategy, retries := range map[string]float64{
		"retry-2x":              p + p*p,
		"retry-budget-10%":      0.1 * (1 - p),
		"retry-budget-grpc":     0, // above 9.1 % of failures it stops them
		"retry-budget-aws":      p + p*p,
		"retry-budget-aws-2026": (1 - p) / (14 * p),
	} {
		load, success := course(t, s, strategy)
		require.InDelta(t, 100*(1+retries), load, 2, strategy)
		want := 100 * (1 - p) * (1 + retries)
		require.InDelta(t, want, success, 0.7, strategy)
	}
}

// Envoy's budget is a fifth of all that is under way, and so a quarter of the first tries, whatever the share
// that fails. With fewer calls per second it is less, because what is under way comes and goes.
func TestEnvoysBudgetIsAQuarterOfTheFirstTries(t *testing.T) {
	for scenario, p := range map[string]float64{"budget_presets_partial_failure": 0.3, "budget_presets": 1} {
		load, success := courseAt(t, 20*rate, steady(t, scenario), "retry-budget-envoy")
		require.InDelta(t, 125, load, 1.5, scenario)
		require.InDelta(t, 125*(1-p), success, 1, scenario)
	}
}

func TestFewFailuresEmptyNoBudget(t *testing.T) {
	const p = 0.05
	s := steady(t, "budget_presets_few_failures")
	for _, y := range s.Strategies {
		load, success := course(t, s, y.Name)
		require.InDelta(t, 100*(1+p+p*p), load, 1.5, y.Name)
		require.Greater(t, success, 99.9, y.Name)
	}
}

func TestAPresetKeepsAServerThatRetriesWouldBreak(t *testing.T) {
	require.False(t, collect(t, "mfs", "retry-3x").Summary().SuccessIsBack)
	for _, y := range queueing.Presets() {
		sum := collect(t, "mfs", y.Name).Summary()
		require.True(t, sum.SuccessIsBack, y.Name)
		require.Less(t, sum.SuccessBack.Seconds(), 1.05, y.Name)
	}
}

func TestEveryScenarioHasThePresets(t *testing.T) {
	for _, s := range queueing.Scenarios() {
		for _, name := range []string{"retry-budget-grpc", "retry-budget-aws", "retry-budget-aws-2026", "retry-budget-envoy"} {
			y, err := s.Strategy(name)
			require.NoError(t, err)
			require.Equal(t, name, y.Name)
			_, err = queueing.Run(queueing.Setup{Scenario: s, Strategy: y, RPS: 100})
			require.NoError(t, err, s.Name)
		}
	}
}
