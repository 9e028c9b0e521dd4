package budget

import (
	"context"
	"sync"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Limiter is any rate limiter with a Wait, such as rate.Limiter of
// golang.org/x/time/rate. It must be safe for concurrent use.
type Limiter interface {
	// Wait waits until the caller may go on. It returns an error if that will not be, for
	// instance because ctx has ended.
	Wait(ctx context.Context) error
}

// SlotLimiter is a Limiter that also bounds how many dials are under way at a time. A [Gate]
// and [Limited] call Acquire of such a Limiter instead of Wait.
type SlotLimiter interface {
	Limiter

	// Acquire waits like Wait, and takes a slot, which done gives back. The gate calls done once,
	// from any goroutine, when its own done is called: the connection is of use, or the dial has
	// failed. A nil done means that there is nothing to give back. With an error done is not called.
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

// Limited is a gate made of a Limiter. It is one gate for all hosts together, and does not
// learn whether a host is up. GateOptions.Limiter combines a Limiter with a [Gate].
type Limited struct{ Limiter Limiter }

// Acquire waits at the Limiter, and returns its error. Done gives the slot of a
// [SlotLimiter] back, and does nothing with any other Limiter. A second call of done does
// nothing.
func (l Limited) Acquire(ctx context.Context, _ string) (done func(backoff.Verdict), err error) {
	free, err := pass(ctx, l.Limiter)
	if err != nil {
		return nil, err
	}
	free = sync.OnceFunc(free)
	return func(backoff.Verdict) { free() }, nil
}
