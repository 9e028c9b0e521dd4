package queueing

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

// Strategy is what a caller does about a failed request, in the library's own
// terms, and whether the server helps.
type Strategy struct {
	Name     string
	Policy   backoff.Policy                                   // when to send the next request of a call, and when to give up
	Budget   func(now func() time.Time) (retry.Budget, error) // asked for leave before each request; nil: no budget
	Local    bool                                             // each 200 calls per second have a Budget of their own; else there is one for all
	Deadline bool                                             // the server knows until when a caller waits
}

// never is the policy of callers that do not retry.
type never struct{}

func (never) Next(backoff.History, *rand.Rand) (backoff.Step, bool) { return backoff.Step{}, false }

// localRate is how many calls per second one client makes where budgets are
// local.
const localRate = 200

// The strategies of the article, by its names.
var (
	none    = Strategy{Name: "no-retries", Policy: never{}}
	retry2  = Strategy{Name: "retry-2x", Policy: backoff.Limit(&backoff.Exponential{Base: -1}, 2, 0)}
	retry3  = Strategy{Name: "retry-3x", Policy: backoff.Limit(&backoff.Exponential{Base: -1}, 3, 0)}
	exp3    = Strategy{Name: "retry-3x-with-exp-backoff", Policy: backoff.Limit(waits(backoff.JitterNone), 3, 0)}
	jitter2 = Strategy{Name: "retry-2x-with-exp-backoff+jitter", Policy: backoff.Limit(waits(backoff.JitterFull), 2, 0)}
	jitter3 = Strategy{Name: "retry-3x-with-exp-backoff+jitter", Policy: backoff.Limit(waits(backoff.JitterFull), 3, 0)}

	retryBudget  = Strategy{Name: "retry-budget-10%", Policy: retry2.Policy, Budget: newBudget}
	retryBreaker = Strategy{Name: "retry-cb-10%", Policy: retry2.Policy, Budget: newRetryBreaker}

	propagation = Strategy{Name: "retry-2x-deadline-propagation", Policy: retry2.Policy, Deadline: true}
)

// waits is min(100 ms x 2^n, 1 s) before wait n from 0.
func waits(j backoff.Jitter) backoff.Policy {
	return &backoff.Exponential{Base: 100 * ms, Cap: time.Second, Jitter: j}
}

// breaker is retry-2x in a circuit breaker that opens at so many percent of
// failures. As in the article a whole call is admitted or not, all its requests
// are counted, and half open lets every call pass.
func breaker(percent int) Strategy {
	o := &budget.BreakerOptions{
		Window: 200 * ms, MinSamples: 100, Share: float64(percent) / 100,
		Open: 100 * ms, HalfOpen: -1, Trials: 100, PassRetries: true,
	}
	return Strategy{
		Name:   fmt.Sprintf("retry-2x-circuit-breaker-%d%%", percent),
		Policy: retry2.Policy,
		Budget: func(now func() time.Time) (retry.Budget, error) {
			mine := *o
			mine.Now = now
			return budget.NewBreaker(&mine)
		},
	}
}

func newBudget(func() time.Time) (retry.Budget, error) {
	return budget.New(&budget.Options{Capacity: 3000, Retry: 100, First: 10})
}

func newRetryBreaker(now func() time.Time) (retry.Budget, error) {
	return budget.NewBreaker(&budget.BreakerOptions{Window: 200 * ms, Share: 0.1, MinSamples: 1, Open: -1, Now: now})
}

// over returns y with the policy of z.
func (y Strategy) over(z Strategy) Strategy {
	y.Policy = z.Policy
	return y
}

// named returns y with more of a name.
func (y Strategy) named(suffix string) Strategy {
	y.Name += suffix
	return y
}

// local returns y with a budget for each client.
func (y Strategy) local() Strategy {
	y.Local = true
	return y.named("-local")
}
