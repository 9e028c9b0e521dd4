package budget_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

func newRetryBreaker(t *testing.T, o budget.RetryBreakerOptions) (*budget.RetryBreaker, *clock) {
	t.Helper()
	c := newClock()
	o.Now = c.Now
	b, err := budget.NewRetryBreaker(&o)
	require.NoError(t, err)
	return b, c
}

func TestARetryBreakerRefusesWithoutEvidence(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.RetryBreakerOptions{})
	require.False(t, try(b, refused, success))
	require.True(t, try(b, first, success))
	require.True(t, try(b, refused, success))
}

// A tenth, as in Isaev, "Good Retry, Bad Retry".
func TestARetryBreakerRefusesFromItsShareOn(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.RetryBreakerOptions{})
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
	b, c := newRetryBreaker(t, budget.RetryBreakerOptions{Window: 200 * time.Millisecond})
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
	b, _ := newRetryBreaker(t, budget.RetryBreakerOptions{MinSamples: 3})
	try(b, first, refused)
	try(b, first, refused)
	_, ok := b.Admit(refused)
	require.True(t, ok)
	try(b, first, refused)
	_, ok = b.Admit(refused)
	require.False(t, ok)
}

func TestARetryBreakerDoesNotCountATryThatSaysNothing(t *testing.T) {
	b, _ := newRetryBreaker(t, budget.RetryBreakerOptions{Share: 0.5})
	try(b, first, aborted)
	require.False(t, try(b, refused, success), "nothing is known")
	try(b, first, success)
	try(b, first, aborted)
	try(b, refused, skipped)
	_, ok := b.Admit(refused)
	require.True(t, ok, "none of one failed")
}
