package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// RetryBreaker refuses retries while too many of the recent tries have failed, and
// while there were none (seeds.md 1.2, retry-cb-10%). First tries are always
// admitted. Against a [Budget] it adds less load in a total failure and costs more
// successes in a partial one; a window's worth of storm passes before it acts.
//
// A try that ends with ClassStop is not counted, whether it was begun or not. To admit
// a retry takes nothing, so that nothing needs to be given back.
//
// It is a [backoff.Budget], and safe for concurrent use.
type RetryBreaker struct {
	o RetryBreakerOptions

	mu     sync.Mutex // guards recent
	recent window
}

// RetryBreakerOptions are the options of [NewRetryBreaker]; nil has the defaults.
type RetryBreakerOptions struct {
	Window     time.Duration    // what counts as recent, to a twentieth. Default 10 s
	Share      float64          // of failures among the tries from which on retries are refused. Default 0.1
	MinSamples int              // with fewer recent tries, but one at least, retries pass. Default 1
	Now        func() time.Time // default time.Now
}

// NewRetryBreaker returns one that has seen nothing. The error names the option
// that is wrong.
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
	b.recent = newWindow(b.o.Window)
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

// Admit implements [backoff.Budget].
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
