package budget

import (
	"context"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Limiter is any rate limiter that can be waited at: rate.Limiter of
// golang.org/x/time/rate is one. It must return when ctx ends, and be safe for
// concurrent use.
type Limiter interface {
	Wait(ctx context.Context) error
}

// Limited is a Limiter as a gate, for all hosts together, and without a Gate's
// knowledge of whether a host is up. For both, see GateOptions.Limiter.
type Limited struct{ Limiter Limiter }

// Acquire waits at the limiter. Done does nothing.
func (l Limited) Acquire(ctx context.Context, _ string) (done func(backoff.Verdict), err error) {
	if err := l.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	return func(backoff.Verdict) {}, nil
}
