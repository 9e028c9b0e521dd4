package budget_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	const n = 3
	for name, within := range map[string]func(t *testing.T, k int) bool{
		"GateOptions.Concurrent": func(t *testing.T, k int) bool {
			g := newGate(t, &budget.GateOptions{Rate: -1, Concurrent: n})
			return dialing(t, g, k) == k
		},
		"GateOptions.Burst": func(t *testing.T, k int) bool {
			g := newGate(t, &budget.GateOptions{Rate: 1, Burst: n, Concurrent: -1})
			return dialing(t, g, k) == k
		},
		"BudgetOptions.Capacity": func(t *testing.T, k int) bool {
			b, err := budget.New(&budget.Options{Capacity: n * 100, Retry: 100})
			require.NoError(t, err)
			for range k - 1 {
				require.True(t, try(b, refused, refused))
			}
			return try(b, refused, refused)
		},
		"BreakerOptions.HalfOpen": func(t *testing.T, k int) bool {
			b, c := tripped(t, budget.BreakerOptions{HalfOpen: n})
			c.after(5 * time.Second)
			for range k - 1 {
				_, ok := b.Admit(first)
				require.True(t, ok)
			}
			_, ok := b.Admit(first)
			return ok
		},
		"BreakerOptions.MinSamples": func(t *testing.T, k int) bool {
			b, _ := newBreaker(t, budget.BreakerOptions{MinSamples: n + 1})
			for range k {
				try(b, first, refused)
			}
			return b.State() == budget.BreakerClosed
		},
		"BreakerOptions.Trials": func(t *testing.T, k int) bool {
			b, c := tripped(t, budget.BreakerOptions{HalfOpen: 10, Trials: n + 1})
			c.after(5 * time.Second)
			for range k {
				try(b, first, success)
			}
			return b.State() == budget.BreakerHalfOpen
		},
		"Window.N": func(t *testing.T, k int) bool {
			l, err := budget.NewLogins(&budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
			require.NoError(t, err)
			for range k - 1 {
				_, short, _ := l.Reserve(nil)
				require.Nil(t, short)
			}
			_, short, _ := l.Reserve(nil)
			return short == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for k := n - 1; k <= n+1; k++ {
				synctest.Test(t, func(t *testing.T) {
					require.Equal(t, k <= n, within(t, k), "%d of %d", k, n)
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

// A breaker is open for as long as Open says.
func TestOpenIsExact(t *testing.T) {
	const n = 3 * time.Second
	for k := n - 1; k <= n+1; k++ {
		b, c := tripped(t, budget.BreakerOptions{Open: n})
		c.after(k)
		_, ok := b.Admit(first)
		require.Equal(t, k >= n, ok, "after %v", k)
	}
}
