package tiers

import (
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// Scenario is what happens in a simulation, and which strategies are tried on it.
type Scenario struct {
	Name       string
	RPS        int           // calls per second that are usual; [Setup] may have another number
	Length     time.Duration // how long calls arrive; what has arrived by then runs to its end
	Bucket     time.Duration // length of a [Bucket]
	Failure    Failure
	Tiers      []Tier // from the one that is called from outside down
	Strategies []Strategy
}

// Failure is when and how the lowest tier fails.
type Failure struct {
	From, To time.Duration // since the start
	Share    float64       // of the requests that end in that time
}

// Tier is one service.
type Tier struct {
	Name     string
	Capacity float64       // what its CPUs can do, times the normal load; their number is rounded up
	Service  time.Duration // median time of its own work on a request
	Queue    time.Duration // how long its CPUs need for a full queue; 0: the queue has no bound
	Timeout  time.Duration // of its caller, counted from sending a request
}

// Strategy is what the callers do about failed requests.
type Strategy struct {
	Name      string
	Callers   []Caller   // of each tier
	Admission *Admission // which users are let in; nil: all
}

// Admission is the manual way out of an overload: a cut to a share of the users. The
// others are let in again by steps, and a user that is let in stays in. Until At, all are.
type Admission struct {
	At    time.Duration // of the cut, since the start
	Share float64       // of the users that are let in from then on
	Step  float64       // what is added to it
	Every time.Duration // between the steps; the first comes so long after the cut
}

// DefaultAdmission is that of the article's incident: 20 minutes after the rollback, and over
// half an hour.
var DefaultAdmission = Admission{At: 35 * time.Minute, Share: 0.01, Step: 0.05, Every: 90 * time.Second}

// Admits returns the share of the users that are let in at a time since the start.
func (a *Admission) Admits(at time.Duration) float64 {
	if a == nil || at < a.At {
		return 1
	}
	return min(1, a.Share+a.Step*float64((at-a.At)/a.Every))
}

// Strategy returns the strategy of that name. The error names those that there are.
func (s *Scenario) Strategy(name string) (Strategy, error) {
	return pick.One("strategy of "+s.Name, name, s.Strategies, func(y Strategy) string { return y.Name })
}

// Find returns the scenario of that name. The error names those that there are.
func Find(name string) (Scenario, error) {
	return pick.One("scenario", name, Scenarios(), func(s Scenario) string { return s.Name })
}

// Scenarios returns all scenarios: two tiers with a failure of a second, and the
// article's incident of an hour.
func Scenarios() []Scenario { return []Scenario{TwoTiers(), Incident(nil, nil)} }

const ms = time.Millisecond

// TwoTiers returns the scenario of a client that calls a service, which calls a store. Its
// store can do four times the normal load, as in most of the article's simulations.
func TwoTiers() Scenario {
	return Scenario{
		Name: "two_tiers", RPS: 40_000, Length: 3 * time.Second, Bucket: 20 * ms,
		Failure: Failure{500 * ms, 1500 * ms, 1},
		Tiers: []Tier{
			{"service", 4, 5 * ms, 0, 400 * ms}, // enough for three tries at the store
			{"store", 4, 10 * ms, 0, 100 * ms},
		},
		Strategies: []Strategy{
			{Name: "client-retries", Callers: []Caller{twice, {}}},
			{Name: "service-retries", Callers: []Caller{{}, twice}},
			{Name: "both-retry", Callers: []Caller{twice, twice}},
			{Name: "both-retry+final-errors", Callers: []Caller{{Policy: twice.Policy, Final: true}, twice}},
			{Name: "both-retry+marked-retries", Callers: []Caller{twice, {Policy: twice.Policy, Marked: true}}},
			{Name: "both-retry+service-budget", Callers: []Caller{twice, twice.with(tenPercent)}},
			{Name: "both-retry+both-budgets", Callers: []Caller{twice.with(tenPercent), twice.with(tenPercent)}},
		},
	}
}

// Incident returns the article's incident in its real time. From minute 5 on an orders service
// fails for ten minutes, and is rolled back; its only caller is an orchestrator, which tries
// three times; people press the button again if their order fails. The manual way out, which
// one of the strategies takes, is to cut the traffic. A nil p means [DefaultPerson], a nil out
// [DefaultAdmission].
func Incident(p *Person, out *Admission) Scenario {
	if p == nil {
		p = &DefaultPerson
	}
	if out == nil {
		out = &DefaultAdmission
	}
	people := Caller{Policy: p}
	return Scenario{
		Name: "incident", RPS: 50, Length: 75 * time.Minute, Bucket: 15 * time.Second,
		Failure: Failure{5 * time.Minute, 15 * time.Minute, 1},
		Tiers: []Tier{
			{"orchestrator", 4, 20 * ms, 5 * time.Second, 4 * time.Second}, // enough for three tries at orders
			{"orders", 4, 100 * ms, 5 * time.Second, time.Second},
		},
		Strategies: []Strategy{
			{Name: "retry", Callers: []Caller{people, backingOff}},
			{Name: "retry+admission", Callers: []Caller{people, backingOff}, Admission: out},
			{Name: "no-retries", Callers: []Caller{people, {}}},
			{Name: "retry+budget", Callers: []Caller{people, backingOff.with(tenPercent)}},
			{Name: "retry+budget+breaker", Callers: []Caller{people, backingOff.with(behindBreaker)}},
			{Name: "retry+nobody-presses-again", Callers: []Caller{{}, backingOff}},
		},
	}
}
