package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// slots is a SlotLimiter. Its Wait fails the test.
type slots struct {
	t     *testing.T
	free  chan struct{}
	given int // how often done was called
}

func newSlots(t *testing.T, n int) *slots {
	s := &slots{t: t, free: make(chan struct{}, n)} // n: one for each slot
	for range n {
		s.free <- struct{}{}
	}
	return s
}

func (s *slots) Wait(context.Context) error {
	s.t.Error("Wait of a SlotLimiter was called")
	return nil
}

func (s *slots) Acquire(ctx context.Context) (func(), error) {
	select {
	case <-s.free:
		return func() { s.given++; s.free <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// gatesOf returns the two gates that a Limiter can be behind.
func gatesOf(t *testing.T, l budget.Limiter) map[string]reconnect.Gate {
	return map[string]reconnect.Gate{
		"Gate":    newGate(t, &budget.GateOptions{Limiter: l}),
		"Limited": budget.Limited{Limiter: l},
	}
}

func TestDoneOfAGateGivesTheSlotBackOnce(t *testing.T) {
	s := newSlots(t, 1)
	for name, g := range gatesOf(t, s) {
		s.given = 0
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err, name)
		require.Empty(t, s.free, name)
		done(success)
		done(success)
		require.Equal(t, 1, s.given, name)
		require.Len(t, s.free, 1, name)
	}
}

func TestADialWaitsForASlot(t *testing.T) {
	for _, name := range []string{"Gate", "Limited"} {
		synctest.Test(t, func(t *testing.T) {
			g := gatesOf(t, newSlots(t, 1))[name]
			first, err := g.Acquire(t.Context(), "a")
			require.NoError(t, err)
			passed := make(chan func(backoff.Verdict), 1) // one Acquire
			go func() {
				second, _ := g.Acquire(t.Context(), "b")
				passed <- second
			}()
			synctest.Wait()
			require.Empty(t, passed)
			first(backoff.Verdict{Class: backoff.ClassRetry}) // a failed dial gives its slot back too
			(<-passed)(success)
		})
	}
}

func TestTheErrorOfASlotLimiterIsTheGates(t *testing.T) {
	for name, g := range gatesOf(t, newSlots(t, 0)) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := g.Acquire(ctx, "a")
		require.ErrorIs(t, err, cause, name)
		if g, ok := g.(*budget.Gate); ok {
			require.Zero(t, g.Status("a").Dialing)
		}
	}
}

// slotless is a SlotLimiter that has nothing to give back.
type slotless struct{}

func (slotless) Wait(context.Context) error              { return nil }
func (slotless) Acquire(context.Context) (func(), error) { return nil, nil }

func TestASlotLimiterMayHaveNothingToGiveBack(t *testing.T) {
	for name, g := range gatesOf(t, slotless{}) {
		done, err := g.Acquire(t.Context(), "a")
		require.NoError(t, err, name)
		done(success)
	}
}

func TestASlotIsGivenBackThoughTheProbePolicyPanics(t *testing.T) {
	s := newSlots(t, 1)
	o := oneAtATime()
	o.Limiter, o.Probe = s, broken(func() { panic("nil map") })
	done, err := newGate(t, o).Acquire(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "nil map", left(func() { done(backoff.Verdict{Class: backoff.ClassRetry}) }))
	require.Equal(t, 1, s.given)
}

// The Limiter comes after the line: a dial that it lets through still is under way.
func TestADialThatPassesTheLimiterKeepsItsPlace(t *testing.T) {
	g := newGate(t, &budget.GateOptions{Concurrent: 1, Limiter: slotless{}})
	done, err := g.Acquire(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, 1, g.Status("a").Dialing)
	done(success)
	require.Zero(t, g.Status("a").Dialing)
}
