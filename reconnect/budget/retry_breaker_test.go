package budget_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// newRetryBreaker returns a retry breaker, by default with the numbers of Isaev, "Good Retry, Bad Retry".
func newRetryBreaker(t *testing.T, o budget.BreakerOptions) (*budget.Breaker, *clock) {
	t.Helper()
	o.Open, o.Share, o.MinSamples = -1, cmp.Or(o.Share, 0.1), cmp.Or(o.MinSamples, 1)
	return newBreaker(t, o)
}

func TestARetryBreakerRefusesWithoutEvidence(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.BreakerOptions{})
	require.False(t, try(b, refused, success))
	require.True(t, try(b, first, success))
	require.True(t, try(b, refused, success))
}

// A tenth, as in Isaev, "Good Retry, Bad Retry".
func TestARetryBreakerRefusesFromItsShareOn(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.BreakerOptions{})
	for range 10 {
		try(b, first, success)
	}
	try(b, first, refused) // 1 of 11
	_, ok := b.Admit(refused)
	require.True(t, ok)
	try(b, first, refused) // 2 of 12
	_, ok = b.Admit(refused)
	require.False(t, ok)
}

func TestARetryBreakerForgets(t *testing.T) {
	b, c := newRetryBreaker(t, budget.BreakerOptions{Window: 200 * time.Millisecond})
	try(b, first, refused)
	c.after(199 * time.Millisecond)
	try(b, first, success)
	require.False(t, try(b, refused, success), "one of two")
	c.after(11 * time.Millisecond)
	require.True(t, try(b, refused, success), "none of one")
	c.after(time.Hour)
	require.False(t, try(b, refused, success), "nothing is known")
}

func TestARetryBreakerWaitsForItsSamples(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.BreakerOptions{MinSamples: 3})
	try(b, first, refused)
	try(b, first, refused)
	_, ok := b.Admit(refused)
	require.True(t, ok)
	try(b, first, refused)
	_, ok = b.Admit(refused)
	require.False(t, ok)
}

func TestARetryBreakerDoesNotCountATryThatSaysNothing(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.BreakerOptions{Share: 0.5})
	try(b, first, aborted)
	require.False(t, try(b, refused, success), "nothing is known")
	try(b, first, success)
	try(b, first, aborted)
	try(b, refused, skipped)
	_, ok := b.Admit(refused)
	require.True(t, ok, "none of one failed")
}

// Its operation was admitted, with all its retries.
func TestARetryBreakerRefusesNoRetryThatPasses(t *testing.T) {
	b, _ := newBreaker(t, budget.BreakerOptions{Open: -1, MinSamples: 1, PassRetries: true})
	require.True(t, try(b, rejected, success), "no try is recent")
	require.True(t, try(b, first, refused))
	require.True(t, try(b, rejected, refused), "it would be open")
}
