package budget

import (
	"context"
	"sync"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Limiter is a rate limiter such as rate.Limiter of golang.org/x/time/rate. It must be safe for concurrent use.
type Limiter interface {
	// Wait waits until the caller may proceed, or returns an error if it may not, as when ctx is done.
	Wait(ctx context.Context) error
}

// SlotLimiter is a Limiter that also limits the dials in progress. Gates call Acquire instead of Wait.
type SlotLimiter interface {
	Limiter

	// Acquire waits like Wait and takes a slot, which done releases. The gate calls done once, from any
	// goroutine, when the connection is usable or the dial has failed. done may be nil. After an error it is
	// not called.
	Acquire(ctx context.Context) (done func(), err error)
}

// pass waits at l, and returns the function that gives the slot back, if l has slots.
func pass(ctx context.Context, l Limiter) (done func(), err error) {
	if s, ok := l.(SlotLimiter); ok {
		done, err = s.Acquire(ctx)
	} else {
		err = l.Wait(ctx)
	}
	if done == nil {
		done = func() {}
	}
	return done, err
}

// Limited makes a gate of a Limiter, for all hosts together, up or down. GateOptions.Limiter combines a
// Limiter with a [Gate].
type Limited struct{ Limiter Limiter }

// Acquire waits at the Limiter, and returns its error. done releases the slot of a [SlotLimiter], if any.
// Further calls do nothing.
func (l Limited) Acquire(ctx context.Context, _ string) (done func(backoff.Verdict), err error) {
	free, err := pass(ctx, l.Limiter)
	if err != nil {
		return nil, err
	}
	free = sync.OnceFunc(free)
	return func(backoff.Verdict) { free() }, nil
}
