package budget

import (
	"context"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Limiter is any rate limiter with a Wait, such as rate.Limiter of
// golang.org/x/time/rate. It must be safe for concurrent use.
type Limiter interface {
	// Wait returns nil when the caller may go on, and an error if that will not be, for
	// instance because ctx has ended.
	Wait(ctx context.Context) error
}

// Limited makes a gate of a Limiter: one for all hosts together, which does not learn
// whether a host is up. GateOptions.Limiter combines a Limiter with a [Gate].
type Limited struct{ Limiter Limiter }

// Acquire waits at the Limiter, and returns its error. Done does nothing.
func (l Limited) Acquire(ctx context.Context, _ string) (done func(backoff.Verdict), err error) {
	if err := l.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	return func(backoff.Verdict) {}, nil
}
