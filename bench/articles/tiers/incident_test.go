package tiers_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/reconnect/backoff"
)

// incident is the article's incident with 20 calls per second, which is run once for each
// strategy: it takes most of the tests' time.
func incident(t *testing.T, name string) *tiers.Result {
	if incidents[name] == nil {
		s := find(t, "incident")
		incidents[name] = run(t, s, strategy(t, s, name), 20)
	}
	return incidents[name]
}

var incidents = map[string]*tiers.Result{}

// The article's incident: 10 minutes until the rollback, and then it goes on, with three times
// the load at the orchestrator and nine times at orders.
func TestTheIncidentOutlivesTheRollback(t *testing.T) {
	y := incident(t, "retry").Summary()
	require.False(t, y.SuccessIsBack)
	require.InDelta(t, 300, y.Load[0], 10)
	require.InDelta(t, 900, y.Load[1], 30)
}

func TestTheManualWayOutTakesTheHour(t *testing.T) {
	r := incident(t, "retry+admission")
	y := r.Summary()
	require.True(t, y.SuccessIsBack)
	hour := y.SuccessBack - r.Setup.Scenario.Failure.From
	require.InDelta(t, 60, hour.Minutes(), 3)
	require.Less(t, r.Load(35*4+4, 1), 10.0, "a minute after the cut 1 % of the users come")
	require.Positive(t, r.Buckets[50*4].Turned)
	require.Zero(t, r.Buckets[len(r.Buckets)-2].Turned, "all are in")
}

// Orders is well as soon as its queue is empty: how long it takes from there on is the steps'.
func TestQuickStepsEndTheIncidentSoonAfterTheCut(t *testing.T) {
	s := find(t, "incident")
	manual := strategy(t, s, "retry+admission")
	out := manual.Admission
	out.Every = 10 * time.Second
	y := run(t, s, manual, 20).Summary()
	require.True(t, y.SuccessIsBack)
	require.InDelta(t, (out.At + 20*out.Every).Minutes(), y.SuccessBack.Minutes(), 0.51)
}

func TestABudgetEndsTheIncidentWithTheRollback(t *testing.T) {
	without := incident(t, "retry+admission").Summary()
	for _, name := range []string{"no-retries", "retry+budget", "retry+budget+breaker", "retry+nobody-presses-again"} {
		y := incident(t, name).Summary()
		require.True(t, y.SuccessIsBack, name)
		require.InDelta(t, 15, y.SuccessBack.Minutes(), 0.51, name)
		require.Less(t, 4*y.Lost, without.Lost, name)
	}
}

// The breaker is what spares a service that fails anyway.
func TestABreakerTakesTheLoadAwayInTheFailure(t *testing.T) {
	budget, breaker := incident(t, "retry+budget").Summary(), incident(t, "retry+budget+breaker").Summary()
	require.InDelta(t, 300, budget.Load[1], 10, "people press the button again")
	require.Less(t, breaker.Load[1], 10.0)
	require.InDelta(t, budget.LostFor.Seconds(), breaker.LostFor.Seconds(), 20, "which costs the orders of seconds, until it closes")
}

func TestItStaysDownOnlyIfTheTriesExceedTheCapacity(t *testing.T) {
	for _, w := range []struct {
		strategy string
		capacity float64
		back     bool
	}{
		{"retry", 4, false}, {"retry", 8, false}, {"retry", 10, true}, // nine tries
		{"retry+budget", 2, false}, {"retry+budget", 4, true}, // three, of people
		{"retry+nobody-presses-again", 2, false}, {"retry+nobody-presses-again", 4, true}, // three, of the orchestrator
	} {
		s := find(t, "incident")
		s.Tiers[1].Capacity, s.Length = w.capacity, 22*time.Minute // 7 after the rollback
		y := run(t, s, strategy(t, s, w.strategy), 20).Summary()
		require.Equal(t, w.back, y.SuccessIsBack, w)
	}
}

func TestPeopleWhoGiveUpEndTheIncident(t *testing.T) {
	for again, back := range map[float64]bool{1: false, 0.1: true} {
		s := find(t, "incident")
		s.Length = 22 * time.Minute // 7 after the rollback
		retry := strategy(t, s, "retry")
		retry.Callers[0].Person.Again = again
		y := run(t, s, retry, 20).Summary()
		require.Equal(t, back, y.SuccessIsBack, again)
	}
}

func TestAPersonPressesAgainAfterAPause(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := &tiers.Person{Presses: 2, Again: 0.5, From: time.Second, To: 3 * time.Second}
	presses := 0
	for range 10_000 {
		step, ok := p.Next(backoff.History{N: 1}, r)
		if ok {
			presses++
			require.GreaterOrEqual(t, step.Wait, time.Second)
			require.Less(t, step.Wait, 3*time.Second)
		}
		_, ok = p.Next(backoff.History{N: 2}, r)
		require.False(t, ok, "twice is enough")
	}
	require.InDelta(t, 5000, presses, 200)
}

func TestUsersAreLetInBySteps(t *testing.T) {
	a := &tiers.Admission{At: time.Minute, Share: 0.01, Step: 0.05, Every: 10 * time.Second}
	for at, want := range map[time.Duration]float64{
		0: 1, 59 * time.Second: 1, 60 * time.Second: 0.01, 69 * time.Second: 0.01, 70 * time.Second: 0.06,
		249 * time.Second: 0.91, 250 * time.Second: 0.96, 260 * time.Second: 1, time.Hour: 1,
	} {
		require.InDelta(t, want, a.Admits(at), 1e-9, at)
	}
	require.Equal(t, 1.0, (*tiers.Admission)(nil).Admits(0))
}

func TestWhoIsNotLetInCostsNothing(t *testing.T) {
	s := failing(1)
	y := tiers.Strategy{Name: "some", Callers: make([]tiers.Caller, 1), Admission: &tiers.Admission{Share: 0.2, Every: time.Hour}}
	total := run(t, s, y, 10_000).Total
	require.InDelta(t, 2000, total.Tiers[0].Sent, 200)
	require.Equal(t, 10_000, total.Tiers[0].Sent+total.Turned)
}
