package tiers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// spy is a budget that admits all and counts the classes of the outcomes.
type spy map[backoff.Class]int

func (s spy) Admit(backoff.Verdict) (func(backoff.Verdict), bool) {
	return func(v backoff.Verdict) { s[v.Class]++ }, true
}

func TestABudgetIsToldErrorsAndTimeoutsApart(t *testing.T) {
	s, err := Find("two_tiers")
	require.NoError(t, err)
	s.Failure = Failure{To: time.Hour, Share: 1}
	s.Tiers = s.Tiers[1:]
	y := Strategy{Name: "spied", Callers: s.Strategies[0].Callers[:1]}
	for timeout, class := range map[time.Duration]backoff.Class{
		time.Minute:     backoff.ClassRetry,    // each answer is an error
		time.Nanosecond: backoff.ClassOverload, // no answer comes in time
	} {
		s.Tiers[0].Timeout = timeout
		r, err := newRun(&Setup{Scenario: s, Strategy: y, RPS: 100})
		require.NoError(t, err)
		told := spy{}
		r.budgets[0] = told
		for r.step() {
		}
		require.Equal(t, spy{class: 3 * 300}, told)
	}
}

func TestCPUsThatAreTakenAwayFinishAndTakeNoMore(t *testing.T) {
	s := Scenario{Name: "x", RPS: 1000, Length: time.Second, Bucket: 100 * time.Millisecond, Tiers: []Tier{{Name: "x", Capacity: 0.5, Service: 10 * time.Millisecond, Timeout: time.Second}}}
	r, err := newRun(&Setup{Scenario: s, Strategy: Strategy{Name: "x", Callers: make([]Caller, 1)}, RPS: 1000})
	require.NoError(t, err)
	tier := &r.servers[0]
	for tier.queue.Len() < 20 {
		require.True(t, r.step())
	}
	require.Equal(t, 6, tier.busy)
	r.resize(0, 2)
	for range 100 {
		require.True(t, r.step())
	}
	require.Equal(t, 2, tier.busy)
	require.GreaterOrEqual(t, tier.queue.Len(), 20)
}
