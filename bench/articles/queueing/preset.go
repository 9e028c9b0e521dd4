package queueing

import (
	"time"

	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

// Presets returns the retry budgets of others that package reconnect/budget has a preset
// for, over retry-2x as the article's budget is. Every scenario has them as strategies
// beside its own: see [Scenario.Strategy].
func Presets() []Strategy {
	return []Strategy{
		preset("grpc", budget.GRPC(10, 0.1)), // the numbers of gRFC A6's example
		preset("aws", budget.AWS()),
		preset("aws-2026", budget.AWS2026()),
	}
}

func preset(name string, o *budget.Options) Strategy {
	return Strategy{
		Name:   "retry-budget-" + name,
		Policy: retry2.Policy,
		Budget: func(func() time.Time) (retry.Budget, error) { return budget.New(o) },
	}
}

// PresetScenarios returns scenarios that the article does not have: its server with little
// to spare, on which all presets are tried beside the article's budget.
func PresetScenarios() []Scenario {
	usual := []time.Duration{100 * ms}
	strategies := append([]Strategy{retry2, retryBudget}, Presets()...)
	var all []Scenario
	for _, x := range []struct {
		name  string
		share float64
	}{
		{"budget_presets", 1},
		{"budget_presets_partial_failure", 0.3},
		{"budget_presets_few_failures", 0.05},
	} {
		all = append(all, Scenario{x.name, 0.54, 1500 * ms, Failure{500 * ms, 1000 * ms, x.share, false}, usual, 0, strategies})
	}
	return all
}
