package tiers_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/tiers"
)

const ms = time.Millisecond

// run is one strategy on a scenario.
func run(t *testing.T, s tiers.Scenario, y tiers.Strategy, rps int) *tiers.Result {
	r, err := tiers.Run(t.Context(), tiers.Setup{Scenario: s, Strategy: y, RPS: rps, Seed: 1})
	require.NoError(t, err)
	require.Equal(t, r.Total.Arrived, r.Total.Ended, "each call ends")
	for i, x := range r.Total.Tiers {
		require.Equal(t, x.Sent, x.Completed+x.Refused, "each request to tier %d ends", i)
	}
	return r
}

// strategy is one of a scenario, by its name.
func strategy(t *testing.T, s tiers.Scenario, name string) tiers.Strategy {
	y, err := s.Strategy(name)
	require.NoError(t, err)
	return y
}

// find is the scenario of that name, read anew.
func find(t *testing.T, name string) tiers.Scenario {
	s, err := tiers.Find(name)
	require.NoError(t, err)
	return s
}

// failing has tiers that have time and CPUs enough for all tries, of which the lowest always
// fails: then what is tried can be counted without a chance of its own.
func failing(many int) tiers.Scenario {
	s := tiers.Scenario{Name: "failing", Length: time.Second, Bucket: 100 * ms, Failure: tiers.Failure{To: time.Hour, Share: 1}}
	for range many {
		s.Tiers = append(s.Tiers, tiers.Tier{Name: "x", Capacity: 100, Service: 10 * ms, Timeout: time.Minute})
	}
	return s
}

func TestThreeTriesOfEachTierMultiply(t *testing.T) {
	const rps = 500
	two := find(t, "two_tiers")
	for name, want := range map[string][2]int{ // requests to the service and to the store
		"client-retries":            {3 * rps, 3 * rps},
		"service-retries":           {rps, 3 * rps},
		"both-retry":                {3 * rps, 9 * rps},
		"both-retry+final-errors":   {rps, 3 * rps},
		"both-retry+marked-retries": {3 * rps, 5 * rps}, // 3 for the first, 1 for each of the two that follow
		"both-retry+service-budget": {3 * rps, 3*rps + 30},
		"both-retry+both-budgets":   {rps + 30, rps + 30 + 30}, // nothing succeeds, and a full bucket is 30 retries
	} {
		total := run(t, failing(2), strategy(t, two, name), rps).Total
		require.Equal(t, want, [2]int{total.Tiers[0].Sent, total.Tiers[1].Sent}, name)
		require.Equal(t, rps, total.Arrived, name)
		require.Zero(t, total.Succeeded, name)
	}
}

func TestThreeTiersMakeTwentySevenTriesOfOne(t *testing.T) {
	caller := strategy(t, find(t, "two_tiers"), "both-retry").Callers[0]
	y := tiers.Strategy{Name: "27", Callers: []tiers.Caller{caller, caller, caller}}
	total := run(t, failing(3), y, 100).Total
	require.Equal(t, []int{300, 900, 2700}, []int{total.Tiers[0].Sent, total.Tiers[1].Sent, total.Tiers[2].Sent})
	y.Callers[0].Final, y.Callers[1].Final = true, true
	require.Equal(t, 300, run(t, failing(3), y, 100).Total.Tiers[2].Sent, "an error stays final on its way up")
	y.Callers[0].Final, y.Callers[1].Final = false, false
	y.Callers[1].Marked, y.Callers[2].Marked = true, true
	require.Equal(t, 700, run(t, failing(3), y, 100).Total.Tiers[2].Sent, "3 + 1 + 1 for the first of three, 1 for each other: a mark stays on its way down")
}

// The queue is served in order, and no caller waits any longer for what it has in it.
func TestNineTriesOutliveTheFailureAndFewerDoNot(t *testing.T) {
	s := find(t, "two_tiers")
	for _, y := range s.Strategies {
		sum := run(t, s, y, 4000).Summary()
		require.Equal(t, y.Name != "both-retry", sum.SuccessIsBack, y.Name)
		if sum.SuccessIsBack {
			require.InDelta(t, 1.5, sum.SuccessBack.Seconds(), 0.061, y.Name)
		} else {
			require.InDelta(t, 900, sum.Peak[1], 60, "three times three")
		}
	}
}

func TestAFailureOfHalfTheRequestsIsMultipliedByWhatFails(t *testing.T) {
	const p = 0.5
	s := failing(2)
	s.Failure.Share = p
	total := run(t, s, strategy(t, find(t, "two_tiers"), "both-retry"), 20_000).Total
	tries := 1 + p + p*p // of a call of the service, of which p^3 fail
	clients := 1 + p*p*p + p*p*p*p*p*p
	require.InDelta(t, clients, float64(total.Tiers[0].Sent)/20_000, 0.01)
	require.InDelta(t, clients*tries, float64(total.Tiers[1].Sent)/20_000, 0.03)
	require.InDelta(t, p*p*p*p*p*p*p*p*p, float64(total.Ended-total.Succeeded)/20_000, 0.001)
}

func TestAFullQueueRefuses(t *testing.T) {
	s := failing(1)
	s.Tiers[0].Capacity, s.Tiers[0].Queue = 0.5, 200*ms
	r := run(t, s, tiers.Strategy{Name: "none", Callers: make([]tiers.Caller, 1)}, 1000)
	cpus := 6 // half of 10.3, rounded up
	room := int(0.2 * float64(cpus) / 0.010317434)
	require.Equal(t, room, r.Total.Tiers[0].Queue)
	require.Greater(t, r.Total.Tiers[0].Refused, 300)
}

func TestARequestThatItsCallerGaveUpIsWorkedOnInVain(t *testing.T) {
	s := failing(2)
	s.Failure = tiers.Failure{}
	s.Tiers[0].Timeout = ms
	total := run(t, s, tiers.Strategy{Name: "none", Callers: make([]tiers.Caller, 2)}, 500).Total
	require.Zero(t, total.Succeeded)
	require.Equal(t, 500, total.Tiers[1].Completed, "the store works for all of them")
}

func TestASeedOfTiersRepeatsItself(t *testing.T) {
	s := find(t, "two_tiers")
	written := func(seed uint64) string {
		r, err := tiers.Run(t.Context(), tiers.Setup{Scenario: s, Strategy: s.Strategies[0], RPS: 500, Seed: seed})
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, tiers.Series([]*tiers.Result{r}).WriteCSV(&b))
		require.Equal(t, 1+2*150, bytes.Count(b.Bytes(), []byte("\n")), "a line per bucket and tier")
		return b.String()
	}
	require.Equal(t, written(1), written(1))
	require.NotEqual(t, written(1), written(2))
}

func TestASetupThatMakesNoSenseIsAnError(t *testing.T) {
	s := find(t, "two_tiers")
	y := s.Strategies[0]
	for want, change := range map[string]func(*tiers.Setup){
		"simulate two_tiers: want 1 to 6666666 calls per second, not -1": func(o *tiers.Setup) { o.RPS = -1 },
		"simulate two_tiers: want 1 to 6666666 calls per second, not 0":  func(o *tiers.Setup) { o.Scenario.RPS = 0 },
		"simulate two_tiers: want a length above 0, not 0s":              func(o *tiers.Setup) { o.Scenario.Length = 0 },
		"simulate two_tiers: want 1 to 10 tiers, not 0":                  func(o *tiers.Setup) { o.Scenario.Tiers = nil },
		"simulate two_tiers: strategy mine has 0 callers for 2 tiers":    func(o *tiers.Setup) { o.Strategy = tiers.Strategy{Name: "mine"} },
		"simulate two_tiers: want buckets of more than 0 to 3s, not 0s":  func(o *tiers.Setup) { o.Scenario.Bucket = 0 },
		"tier x needs a timeout, a service time and a capacity above 0":  func(o *tiers.Setup) { o.Scenario.Tiers = []tiers.Tier{{Name: "x"}, {}} },
		"tier service: scaling needs a target of more than 0 to 1": func(o *tiers.Setup) {
			o.Scenario.Tiers = slices.Clone(s.Tiers)
			o.Scenario.Tiers[0].Scaling = &tiers.Scaling{}
		},
		"strategy client-retries: admission needs time between its steps":                                                   func(o *tiers.Setup) { o.Strategy.Admission = &tiers.Admission{} },
		`caller of service: budget: want a whole percentage from 1% to 100%, or one of grpc, aws, aws-2026, envoy, not "x"`: func(o *tiers.Setup) { o.Strategy.Callers[0].Budget = "x" },
		"caller of service: want -presses of at least 0":                                                                    func(o *tiers.Setup) { o.Strategy.Callers = []tiers.Caller{{Person: &tiers.Person{Presses: -1}}, {}} },
	} {
		o := tiers.Setup{Scenario: s, Strategy: y}
		o.Strategy.Callers = slices.Clone(y.Callers)
		change(&o)
		_, err := tiers.Run(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
	_, err := tiers.Find("x")
	require.EqualError(t, err, `there is no scenario "x": there are two_tiers, incident, incident_shedding, incident_autoscaling, incident_autoscaling_to_eight_times`)
	_, err = s.Strategy("x")
	require.ErrorContains(t, err, `there is no strategy of two_tiers "x": there are client-retries, `)
}

func TestAnInterruptedRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	s := find(t, "two_tiers")
	_, err := tiers.Run(ctx, tiers.Setup{Scenario: s, Strategy: s.Strategies[0]})
	require.ErrorIs(t, err, enough)
}
