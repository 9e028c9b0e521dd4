package queueing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// counted admits all, and counts the tries whose outcome it was not told.
type counted struct{ admitted, open int }

func (c *counted) Admit(backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	c.admitted++
	c.open++
	return func(backoff.Verdict) { c.open-- }, true
}

// A try that is not made because its host is ejected takes nothing from a budget.
func TestABudgetIsToldOfEachTryThatItAdmits(t *testing.T) {
	s, err := Find("one_shard_of_five")
	require.NoError(t, err)
	for _, y := range s.Strategies {
		r, err := newRun(&Setup{Scenario: s, Strategy: y, RPS: 1000, Seed: 1, Bucket: FineBucket})
		require.NoError(t, err)
		c := &counted{}
		r.budgets = []retry.Budget{c}
		r.leaves = make([]leave, len(r.calls))
		for r.step() {
		}
		require.Greater(t, c.admitted, 1000, y.Name)
		require.Zero(t, c.open, y.Name)
	}
}
