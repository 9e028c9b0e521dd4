package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// RetryBreaker refuses retries while too many of the recent tries have failed, and while
// there are no recent tries. It always admits first tries. A [Budget] is the better
// choice: a RetryBreaker adds less load in a total failure but costs more successes in
// a partial one, and lets a window's worth of storm pass before it acts. It is here
// because Marc Brooker, "Fixing retries with token buckets and circuit breakers", and
// Denis Isaev, "Good Retry, Bad Retry: An Incident Story", compare the two, and this
// project reproduces that.
//
// A try that ends with ClassStop is not counted, whether it was begun or not. Nothing is
// taken when a retry is admitted, so that nothing has to come back.
//
// It is a [retry.Budget], and safe for concurrent use.
type RetryBreaker struct {
	o RetryBreakerOptions

	mu     sync.Mutex // guards recent
	recent recent
}

// RetryBreakerOptions are the options of [NewRetryBreaker]; nil means the defaults.
type RetryBreakerOptions struct {
	Window     time.Duration    // how long an outcome counts as recent, to a twentieth. Default 10 s
	Share      float64          // the share of failures among the recent tries at which retries are refused, from 0 to 1. Default 0.1
	MinSamples int              // retries pass while there are fewer recent tries than this, but at least one. Default 1
	Now        func() time.Time // default time.Now
}

// NewRetryBreaker returns a RetryBreaker that knows of no tries yet. The error names the
// option that is wrong.
func NewRetryBreaker(o *RetryBreakerOptions) (*RetryBreaker, error) {
	b := &RetryBreaker{}
	if o != nil {
		b.o = *o
	}
	if err := validate(b.o.Window, b.o.Share, b.o.MinSamples); err != nil {
		return nil, err
	}
	if b.o.Window == 0 {
		b.o.Window = defaultWindow
	}
	if b.o.Share == 0 {
		b.o.Share = 0.1
	}
	if b.o.Now == nil {
		b.o.Now = time.Now
	}
	b.recent = newRecent(b.o.Window)
	return b, nil
}

const defaultWindow = 10 * time.Second

func validate(window time.Duration, share float64, samples int) error {
	switch {
	case window < 0:
		return fmt.Errorf("budget: option Window is negative: %v", window)
	case !(share >= 0 && share <= 1):
		return fmt.Errorf("budget: option Share is %v: want a part of 1", share)
	case samples < 0:
		return fmt.Errorf("budget: option MinSamples is negative: %d", samples)
	}
	return nil
}

// Admit implements [retry.Budget].
func (b *RetryBreaker) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	if last.Class == backoff.ClassOK {
		return b.done, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recent.advance(b.o.Now())
	seen := b.recent.sum
	if seen.total == 0 || seen.total >= b.o.MinSamples && seen.share() >= b.o.Share {
		return nil, false
	}
	return b.done, true
}

func (b *RetryBreaker) done(v backoff.Verdict) {
	if v.Class == backoff.ClassStop {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recent.record(b.o.Now(), v.Class != backoff.ClassOK)
}
