package budget_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/budget"
)

// bound is a limit that an option sets.
type bound struct {
	name string
	n    int

	// within uses k of what is bounded, and reports whether that was within the bound.
	within func(t *testing.T, n, k int) bool
}

var bounds = []bound{
	{"GateOptions.Concurrent", 3, func(t *testing.T, n, k int) bool {
		return dialing(t, newGate(t, &budget.GateOptions{Rate: -1, Concurrent: n}), k) == k
	}},
	{"GateOptions.Concurrent by default", 16, func(t *testing.T, _, k int) bool {
		return dialing(t, newGate(t, &budget.GateOptions{Rate: -1}), k) == k
	}},
	{"GateOptions.Burst", 3, func(t *testing.T, n, k int) bool {
		return dialing(t, newGate(t, &budget.GateOptions{Rate: 1, Burst: n, Concurrent: -1}), k) == k
	}},
	{"GateOptions.Burst by default", 10, func(t *testing.T, _, k int) bool {
		return dialing(t, newGate(t, &budget.GateOptions{Rate: 1, Concurrent: -1}), k) == k
	}},
	{"Options.Capacity", 3, func(t *testing.T, n, k int) bool {
		b := newBudget(t, &budget.Options{Capacity: n * 100, Retry: 100})
		return drain(b, refused) >= k
	}},
	{"Options.Capacity and Retry by default", 30, func(t *testing.T, _, k int) bool {
		return drain(newBudget(t, nil), refused) >= k
	}},
	{"Options.Failure", 3, func(t *testing.T, n, k int) bool {
		b := newBudget(t, &budget.Options{Capacity: 2 * n, Retry: n, Failure: k})
		try(b, first, refused)
		return try(b, refused, refused)
	}},
	// With k tokens a retry is refused.
	{"Options.Reserve", 3, func(t *testing.T, n, k int) bool {
		return !try(holding(t, k, budget.Options{Reserve: n, Retry: -1}), refused, refused)
	}},
	{"BreakerOptions.HalfOpen", 3, func(t *testing.T, n, k int) bool {
		return tryingHalfOpen(t, budget.BreakerOptions{HalfOpen: n}) >= k
	}},
	{"BreakerOptions.HalfOpen by default", 3, func(t *testing.T, _, k int) bool {
		return tryingHalfOpen(t, budget.BreakerOptions{}) >= k
	}},
	{"Window.N", 3, func(_ *testing.T, n, k int) bool {
		now, w := newClock().now, &budget.Window{N: n, Per: time.Hour}
		at := send(w, now, k)
		return at[k-1].Equal(now)
	}},
	{"Window.N of Logins", 3, func(t *testing.T, n, k int) bool {
		l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
		require.NoError(t, err)
		for range k - 1 {
			_, short, _ := l.Reserve(nil)
			require.Nil(t, short)
		}
		_, short, _ := l.Reserve(nil)
		return short == nil
	}},
}

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				synctest.Test(t, func(t *testing.T) {
					require.Equal(t, k <= b.n, b.within(t, b.n, k), "%d of %d", k, b.n)
				})
			}
		})
	}
}

// threshold is a number that an option sets, at which something begins to happen.
type threshold struct {
	name string
	n    int

	// reached reports whether it happens with k.
	reached func(t *testing.T, n, k int) bool
}

var thresholds = []threshold{
	{"Options.Retry", 3, func(t *testing.T, n, k int) bool {
		return try(holding(t, k, budget.Options{Retry: n}), refused, refused)
	}},
	{"Options.AfterOverload", 3, func(t *testing.T, n, k int) bool {
		return try(holding(t, k, budget.Options{Retry: 1, AfterOverload: n}), timeout, refused)
	}},
	{"Options.AfterOverload by default", 3, func(t *testing.T, n, k int) bool {
		return try(holding(t, k, budget.Options{Retry: n}), timeout, refused)
	}},
	{"Options.First", 3, func(t *testing.T, n, k int) bool {
		b := holding(t, 0, budget.Options{Retry: n, First: k})
		try(b, first, success)
		return try(b, refused, refused)
	}},
	{"Options.First by default", 10, func(t *testing.T, _, k int) bool {
		b := newBudget(t, nil)
		drain(b, refused)
		for range k {
			try(b, first, success)
		}
		return try(b, refused, refused)
	}},
	{"Options.Again", 3, func(t *testing.T, n, k int) bool {
		b := holding(t, n, budget.Options{Retry: n, Again: k})
		require.True(t, try(b, refused, success))
		return try(b, refused, refused)
	}},
	{"BreakerOptions.MinSamples", 4, func(t *testing.T, n, k int) bool {
		return opensAfter(t, budget.BreakerOptions{MinSamples: n}, 0, k)
	}},
	{"BreakerOptions.MinSamples by default", 20, func(t *testing.T, _, k int) bool {
		return opensAfter(t, budget.BreakerOptions{}, 0, k)
	}},
	{"BreakerOptions.Share", 3, func(t *testing.T, n, k int) bool {
		return opensAfter(t, budget.BreakerOptions{MinSamples: 10, Share: float64(n) / 10}, 10-k, k)
	}},
	{"BreakerOptions.Share by default", 10, func(t *testing.T, _, k int) bool {
		return opensAfter(t, budget.BreakerOptions{}, 20-k, k)
	}},
	{"BreakerOptions.Trials", 4, func(t *testing.T, n, k int) bool {
		return closesAfter(t, budget.BreakerOptions{HalfOpen: 10, Trials: n}, k)
	}},
	{"BreakerOptions.Trials by default, HalfOpen", 5, func(t *testing.T, n, k int) bool {
		return closesAfter(t, budget.BreakerOptions{HalfOpen: n}, k)
	}},
	{"BreakerOptions.Trials by default, MinSamples", 20, func(t *testing.T, n, k int) bool {
		return closesAfter(t, budget.BreakerOptions{HalfOpen: -1, MinSamples: n}, k)
	}},
}

// What happens at a number does not happen with one less.
func TestThresholdsAreExact(t *testing.T) {
	for _, b := range thresholds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				require.Equal(t, k >= b.n, b.reached(t, b.n, k), "%d of %d", k, b.n)
			}
		})
	}
}

// timeBound is a time that an option sets.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // the event has happened at n itself

	// happened reports whether the event has happened after k.
	happened func(t *testing.T, n, k time.Duration) bool
}

var timeBounds = []timeBound{
	// The time to the next dial is rounded up.
	{"GateOptions.Rate", 250 * time.Millisecond, false, func(t *testing.T, _, k time.Duration) bool {
		g := newGate(t, &budget.GateOptions{Rate: 4, Burst: 1, Concurrent: -1})
		dialing(t, g, 2)
		time.Sleep(k)
		synctest.Wait()
		return g.Status("a").Dialing == 2
	}},
	{"GateOptions.Rate by default", 2 * time.Millisecond, false, func(t *testing.T, _, k time.Duration) bool {
		g := newGate(t, &budget.GateOptions{Burst: 1, Concurrent: -1})
		dialing(t, g, 2)
		time.Sleep(k)
		synctest.Wait()
		return g.Status("a").Dialing == 2
	}},
	{"BreakerOptions.Open", 3 * time.Second, true, func(t *testing.T, n, k time.Duration) bool {
		b, c := tripped(t, budget.BreakerOptions{Open: n})
		c.after(k)
		_, ok := b.Admit(first)
		return ok
	}},
	{"BreakerOptions.Open by default", 5 * time.Second, true, func(t *testing.T, _, k time.Duration) bool {
		b, c := tripped(t, budget.BreakerOptions{})
		c.after(k)
		_, ok := b.Admit(first)
		return ok
	}},
	{"BreakerOptions.Window", 20 * time.Second, true, func(t *testing.T, n, k time.Duration) bool {
		return forgets(t, budget.BreakerOptions{Window: n}, 0, k)
	}},
	{"BreakerOptions.Window, less a twentieth", 19*time.Second + 1, true, func(t *testing.T, n, k time.Duration) bool {
		return forgets(t, budget.BreakerOptions{Window: 20 * time.Second}, time.Second-1, k)
	}},
	{"BreakerOptions.Window, from a twentieth on", 20 * time.Second, true, func(t *testing.T, n, k time.Duration) bool {
		return forgets(t, budget.BreakerOptions{Window: n}, time.Second, k)
	}},
	{"BreakerOptions.Window by default", 10 * time.Second, true, func(t *testing.T, _, k time.Duration) bool {
		return forgets(t, budget.BreakerOptions{}, 0, k)
	}},
	{"Window.Per", 3 * time.Second, true, func(t *testing.T, n, k time.Duration) bool {
		now, w := newClock().now, &budget.Window{N: 1, Per: n}
		w.Take(now)
		happened := w.Free(now.Add(k)) == 1
		require.Equal(t, happened, w.At(now.Add(k)).Equal(now.Add(k)))
		return happened
	}},
	{"Window.Per of Logins", 3 * time.Second, true, func(t *testing.T, n, k time.Duration) bool {
		l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: 1, Per: n}}})
		require.NoError(t, err)
		require.NoError(t, l.Take(t.Context()))
		time.Sleep(k)
		happened := l.Free() == 1
		require.Equal(t, happened, l.Take(t.Context()) == nil)
		return happened
	}},
}

// What happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				synctest.Test(t, func(t *testing.T) {
					want := k > b.n || k == b.n && b.at
					require.Equal(t, want, b.happened(t, b.n, k), "after %v, and the option is %v", k, b.n)
				})
			}
		})
	}
}

// dialing returns how many of k goroutines g lets dial now.
func dialing(t *testing.T, g *budget.Gate, k int) int {
	for range k {
		go func() {
			if done, err := g.Acquire(t.Context(), "a"); err == nil {
				<-t.Context().Done()
				done(success)
			}
		}()
	}
	synctest.Wait()
	return g.Status("a").Dialing
}

// holding returns a budget that holds k tokens.
func holding(t *testing.T, k int, o budget.Options) *budget.Budget {
	t.Helper()
	o.Capacity, o.Failure = 100, 1
	b := newBudget(t, &o)
	for b.Tokens() > k {
		try(b, first, refused)
	}
	return b
}

// tryingHalfOpen returns how many tries a half open breaker lets through at a time.
func tryingHalfOpen(t *testing.T, o budget.BreakerOptions) (n int) {
	t.Helper()
	b, c := tripped(t, o)
	c.after(5 * time.Second)
	for {
		if _, ok := b.Admit(first); !ok {
			return n
		}
		n++
	}
}

// opensAfter reports whether a breaker opens after these successes and then failures.
func opensAfter(t *testing.T, o budget.BreakerOptions, successes, failures int) bool {
	t.Helper()
	b, _ := newBreaker(t, o)
	for range successes {
		try(b, first, success)
	}
	for range failures {
		try(b, first, refused)
	}
	return b.State() == budget.BreakerOpen
}

// closesAfter reports whether a half open breaker closes after k successes.
func closesAfter(t *testing.T, o budget.BreakerOptions, k int) bool {
	t.Helper()
	b, c := tripped(t, o)
	c.after(5 * time.Second)
	for range k {
		try(b, first, success)
	}
	return b.State() == budget.BreakerClosed
}

// forgets reports whether a failure counts no longer after k. It happened at a time since the first try.
func forgets(t *testing.T, o budget.BreakerOptions, at, k time.Duration) bool {
	t.Helper()
	o.MinSamples, o.Share = 2, 1
	b, c := newBreaker(t, o)
	require.Equal(t, budget.BreakerClosed, b.State())
	c.after(at)
	try(b, first, refused)
	c.after(k)
	try(b, first, refused)
	return b.State() == budget.BreakerClosed
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{
		"GateOptions.":    reflect.TypeFor[budget.GateOptions](),
		"Options.":        reflect.TypeFor[budget.Options](),
		"BreakerOptions.": reflect.TypeFor[budget.BreakerOptions](),
		"Window.":         reflect.TypeFor[budget.Window](),
	}
	require.Empty(t, numeric.WithoutRow(options, bounds, thresholds, timeBounds))
}
