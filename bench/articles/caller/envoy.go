package caller

import (
	"sync"

	"github.com/redial-go/redial/reconnect/backoff"
)

const envoyName = "envoy"

// envoy is the retry budget of Envoy's clusters (circuit_breakers, retry_budget) with its defaults: a retry
// is refused while the retries under way are 20 % of all tries under way (budget_percent), but not if
// there are fewer than three of them (min_retry_concurrency). It has no memory and no clock. Here a retry
// that waits counts as a try under way; in Envoy it counts as a retry alone.
type envoy struct {
	mu      sync.Mutex // guards what follows
	tries   int        // under way, retries among them
	retries int        // under way, and those that wait
}

// Admit implements [retry.Budget].
func (e *envoy) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	again := 0
	if last.Class != backoff.ClassOK {
		again = 1
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if again > 0 && e.retries >= max(3, e.tries/5) {
		return nil, false
	}
	e.tries++
	e.retries += again
	return func(backoff.Verdict) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.tries--
		e.retries -= again
	}, true
}
