package queueing

import (
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// Scenario is what happens in a simulation, and which strategies are tried on it.
type Scenario struct {
	Name       string
	Coef       float64         // the server's capacity is 4 Coef times the normal load
	Length     time.Duration   // how long calls arrive; what has arrived by then runs to its end
	Failure    Failure         //
	Timeouts   []time.Duration // of a request, counted from sending it; each call draws one for all its requests
	Limit      float64         // of calls under way at once, in seconds of normal load (0.1: a tenth of the calls per second); 0: none
	Strategies []Strategy
}

// Failure is when and how the server fails.
type Failure struct {
	From, To time.Duration // since the start
	Share    float64       // of the requests that end in that time
	ByUser   bool          // Share is of the users instead: a user that fails once fails each time
}

const (
	ms = time.Millisecond

	uptime      = 0.995   // of the server outside of the failure
	meanTrip    = 5 * ms  // of Exp: the network
	medianServe = 10 * ms // of LogNormal(0, sigma): the handler
	sigma       = 0.25
)

// meanServe is the mean service time in s: 10 ms x e^(sigma^2/2).
const meanServe = 0.010317434074991027

// CPUs returns how many CPUs the server has for rps calls per second.
func (s *Scenario) CPUs(rps int) int {
	return max(1, int(4*s.Coef*float64(rps)*meanServe))
}

// Permits returns how many calls may be under way at once, 0 for any number.
func (s *Scenario) Permits(rps int) int {
	if s.Limit == 0 {
		return 0
	}
	return max(1, int(float64(s.Limit*float64(rps))+1e-9))
}

// Strategy returns the strategy of that name: one of the scenario, or one of [Presets]. The
// error names those that there are.
func (s *Scenario) Strategy(name string) (Strategy, error) {
	all := slices.Concat(s.Strategies, Presets())
	return pick.One("strategy of "+s.Name, name, all, func(y Strategy) string { return y.Name })
}

// When returns a time of a [Summary] as people read it: "1.04 s", or if there is none
// "not within 1.5s", which is the scenario's length.
func (s *Scenario) When(at time.Duration, ok bool) string {
	if !ok {
		return fmt.Sprintf("not within %v", s.Length)
	}
	return fmt.Sprintf("%.2f s", at.Seconds())
}

// Find returns the scenario of that name: one of [Scenarios] or [PresetScenarios], or
// retry_cb_vs_budget, which is two strategies of another.
func Find(name string) (Scenario, error) {
	for _, s := range slices.Concat(Scenarios(), PresetScenarios()) {
		if s.Name == name {
			return s, nil
		}
		if s.Name == partial && name == "retry_cb_vs_budget" {
			s.Name = name
			s.Strategies = slices.DeleteFunc(s.Strategies, func(y Strategy) bool { return y.Budget == nil })
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("find scenario %q: there is none of that name", name)
}

const partial = "retry_cb_or_budget_vs_exp_backoff_partial_failure"

// Scenarios returns the 17 scenarios of the article and its program, in their order
// and with their names.
func Scenarios() []Scenario {
	down, long := Failure{500 * ms, 1000 * ms, 1, false}, Failure{500 * ms, 1500 * ms, 1, false}
	third, shard := Failure{500 * ms, 1000 * ms, 0.3, false}, Failure{500 * ms, 1000 * ms, 0.2, true}
	usual, mixed := []time.Duration{100 * ms}, []time.Duration{100 * ms, 200 * ms, 300 * ms}
	late := "exponential_backoff_just_delays_problem_"
	five := []Strategy{none, retry2, jitter2, retryBreaker, retryBudget}
	return []Scenario{
		{"simple_retry_only", 1, 1500 * ms, down, usual, 0, []Strategy{retry3}},
		{"simple_retry_vs_backoff", 1, 1500 * ms, down, usual, 0, []Strategy{retry3, exp3}},
		{"simple_retry_vs_backoff_closed_loop", 1, 1750 * ms, down, usual, 0.1, []Strategy{retry3, exp3}},
		{"jitter_vs_no_jitter", 1, 1750 * ms, down, usual, 0.1, []Strategy{exp3, jitter3}},
		{"jitter_vs_no_jitter_cpu_half", 0.5, 2200 * ms, down, usual, 0.1, []Strategy{exp3, jitter3}},
		{late + "open_loop", 1, 2000 * ms, long, usual, 0, []Strategy{retry3, jitter3}},
		{late + "good_closed_loop", 1, 2000 * ms, long, usual, 0.3, []Strategy{retry3, jitter3}},
		{late + "bad_closed_loop", 1, 2000 * ms, long, usual, 0.4, []Strategy{retry3, jitter3}},
		{"any_retries_are_slowing_down_recovery", 0.54, 2500 * ms, long, mixed, 0, []Strategy{none, retry2, jitter2}},
		{"retry_cb_or_budget_vs_exp_backoff", 0.54, 1500 * ms, down, usual, 0, five},
		{partial, 0.54, 1500 * ms, third, usual, 0, slices.Clone(five)},
		{"circuit_breaker_vs_retry_budget/cb_threshold=10%/fail_rate=20%", 0.5, 1500 * ms, shard, usual, 0,
			[]Strategy{retry2, breaker(10), retryBudget.over(jitter2)}},
		{"circuit_breaker_vs_retry_budget/cb_threshold=50%/fail_rate=20%", 0.5, 1500 * ms, shard, usual, 0,
			[]Strategy{retry2, breaker(50), retryBudget.over(jitter2)}},
		{"dp_vs_retry_budget", 0.58, 1500 * ms, down, usual, 0, []Strategy{retry2, propagation, retryBudget.over(jitter2)}},
		{"mfs", 0.5, 1500 * ms, down, usual, 0, []Strategy{retry3}},
		{"retry_budget_over_what", 0.54, 1500 * ms, down, usual, 0,
			[]Strategy{retryBudget.named("+retry-2x"), retryBudget.over(jitter2).named("+exp-backoff-2x")}},
		{"retry_cb_budget_global_vs_local", 1, 1500 * ms, down, usual, 0,
			[]Strategy{retryBreaker.named("-global"), retryBreaker.local(), retryBudget.named("-global"), retryBudget.local()}},
	}
}
