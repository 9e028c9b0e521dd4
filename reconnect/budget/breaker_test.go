package budget_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

// clock is a time that only the test moves.
type clock struct{ now time.Time }

func newClock() *clock                 { return &clock{now: time.Unix(1_000_000, 0)} }
func (c *clock) Now() time.Time        { return c.now }
func (c *clock) after(d time.Duration) { c.now = c.now.Add(d) }

func newBreaker(t *testing.T, o budget.BreakerOptions) (*budget.Breaker, *clock) {
	t.Helper()
	c := newClock()
	o.Now = c.Now
	b, err := budget.NewBreaker(&o)
	require.NoError(t, err)
	return b, c
}

// tripped returns a Breaker that has just opened.
func tripped(t *testing.T, o budget.BreakerOptions) (*budget.Breaker, *clock) {
	t.Helper()
	b, c := newBreaker(t, o)
	for range 20 {
		require.True(t, try(b, first, refused))
	}
	require.False(t, try(b, first, success))
	require.Equal(t, budget.BreakerOpen, b.State())
	return b, c
}

func TestABreakerOpensAtItsShare(t *testing.T) {
	b, _ := newBreaker(t, budget.BreakerOptions{MinSamples: 10, Share: 0.5})
	for range 5 {
		try(b, first, success)
	}
	for range 4 {
		try(b, first, refused)
	}
	require.Equal(t, budget.BreakerClosed, b.State(), "too few")
	try(b, first, refused)
	require.Equal(t, budget.BreakerOpen, b.State())
	require.False(t, try(b, first, success))
}

func TestAHalfOpenBreakerBoundsHowManyAreUnderWay(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 2, Trials: 3})
	c.after(5 * time.Second)
	one, ok := b.Admit(first)
	require.True(t, ok)
	two, ok := b.Admit(first)
	require.True(t, ok)
	_, ok = b.Admit(first)
	require.False(t, ok)
	one(success)
	three, ok := b.Admit(first)
	require.True(t, ok)
	two(success)
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	three(success)
	require.Equal(t, budget.BreakerClosed, b.State())
}

// A retry.Loop asks ahead of its wait, which may be an hour. Retries that wait must not take
// all the places of a half-open breaker.
func TestAHalfOpenBreakerLetsNoRetryThrough(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 1})
	c.after(5 * time.Second)
	_, ok := b.Admit(rejected)
	require.False(t, ok)
	require.True(t, try(b, first, success))
	require.Equal(t, budget.BreakerClosed, b.State())
	require.True(t, try(b, rejected, success))
}

// Retries that pass are no trials.
func TestARetryThatPassesTakesNoPlaceInAHalfOpenBreaker(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 2, PassRetries: true})
	c.after(5 * time.Second)
	for range 3 {
		_, ok := b.Admit(rejected)
		require.True(t, ok)
	}
	for _, want := range []bool{true, true, false} {
		_, ok := b.Admit(first)
		require.Equal(t, want, ok)
	}
}

func TestATryThatWasCancelledGivesItsPlaceBack(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 1})
	c.after(5 * time.Second)
	for _, v := range []backoff.Verdict{aborted, skipped, aborted, skipped} {
		require.True(t, try(b, first, v))
	}
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	require.True(t, try(b, first, success), "it decides alone")
	require.Equal(t, budget.BreakerClosed, b.State())
}

func TestOperationsThatPanicLeaveTheirPlaceInAHalfOpenBreaker(t *testing.T) {
	for value, way := range ways {
		b, c := tripped(t, budget.BreakerOptions{})
		c.after(5 * time.Second)
		r := &retry.Loop{Budget: b}
		for range 3 {
			require.Equal(t, value, left(func() { _ = r.Do(t.Context(), func(context.Context) error { way(); return nil }) }))
		}
		require.Equal(t, budget.BreakerHalfOpen, b.State())
		for range 3 {
			require.NoError(t, r.Do(t.Context(), func(context.Context) error { return nil }))
		}
		require.Equal(t, budget.BreakerClosed, b.State())
	}
}

func TestAHalfOpenBreakerOpensAgain(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 1})
	c.after(5 * time.Second)
	try(b, first, rejected)
	require.Equal(t, budget.BreakerOpen, b.State())
	c.after(4 * time.Second)
	require.False(t, try(b, first, success))
	c.after(time.Second)
	require.True(t, try(b, first, success))
	require.Equal(t, budget.BreakerClosed, b.State())
}

func TestALateTrialOfAnEarlierHalfOpenTimeFreesNoPlace(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: 2, Trials: 1})
	c.after(5 * time.Second)
	late, ok := b.Admit(first)
	require.True(t, ok)
	require.True(t, try(b, first, refused))
	require.Equal(t, budget.BreakerOpen, b.State())
	c.after(5 * time.Second)
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	late(success)
	for _, want := range []bool{true, true, false} {
		_, ok := b.Admit(first)
		require.Equal(t, want, ok)
	}
}

// halfOpen returns a breaker that is half open, and the function that ends a try from before it opened.
func halfOpen(t *testing.T, o budget.BreakerOptions) (b *budget.Breaker, old func(backoff.Verdict)) {
	b, c := newBreaker(t, o)
	old, _ = b.Admit(first)
	for range 20 {
		try(b, first, refused)
	}
	require.Equal(t, budget.BreakerOpen, b.State())
	c.after(5 * time.Second)
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	return b, old
}

func TestAnOldOutcomeDecidesNothingHalfOpen(t *testing.T) {
	b, old := halfOpen(t, budget.BreakerOptions{HalfOpen: 1})
	old(refused)
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	require.True(t, try(b, first, success))
	require.Equal(t, budget.BreakerClosed, b.State())
}

// As the breaker in Isaev, "Good Retry, Bad Retry", until 100 results are in.
func TestANegativeHalfOpenLetsEverythingThrough(t *testing.T) {
	b, c := tripped(t, budget.BreakerOptions{HalfOpen: -1, Trials: 100, PassRetries: true})
	require.True(t, try(b, refused, refused), "a retry inside an admitted call")
	c.after(5 * time.Second)
	var under []func(backoff.Verdict)
	for range 150 {
		done, ok := b.Admit(first)
		require.True(t, ok)
		under = append(under, done)
	}
	for _, done := range under[:99] {
		done(success)
	}
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	under[99](success)
	require.Equal(t, budget.BreakerClosed, b.State())
}

func TestABreakersOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]budget.BreakerOptions{
		"Window": {Window: -1}, "Share": {Share: 1.1}, "MinSamples": {MinSamples: -1}, "Trials": {Trials: -1},
	} {
		_, err := budget.NewBreaker(&o)
		require.ErrorContains(t, err, "option "+name)
	}
}

// An outcome counts from the end of its try, however long that took.
func TestALongTryCountsWhenItEnds(t *testing.T) {
	b, c := newBreaker(t, budget.BreakerOptions{MinSamples: 2})
	done, ok := b.Admit(first)
	require.True(t, ok)
	c.after(9 * time.Second)
	done(refused)
	c.after(6 * time.Second)
	require.True(t, try(b, first, refused))
	require.Equal(t, budget.BreakerOpen, b.State())
}

// A breaker that lets everything through half open has no trials of its own: whatever ends meanwhile decides.
func TestAnOldOutcomeCountsWithANegativeHalfOpen(t *testing.T) {
	b, old := halfOpen(t, budget.BreakerOptions{HalfOpen: -1, Trials: 2})
	old(success)
	require.Equal(t, budget.BreakerHalfOpen, b.State())
	require.True(t, try(b, first, success))
	require.Equal(t, budget.BreakerClosed, b.State())
}
