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
// and [Limited] call Acquire of such a Limiter instead of Wait. They call the done that it
// returns once, when the done of the gate is called: when the connection is of use, or the
// dial has failed.
type SlotLimiter interface {
	Limiter

	// Acquire waits like Wait, and takes a slot, which done gives back. A nil done means that
	// there is nothing to give back; with an error it is not called. It must be safe to call
	// done from any goroutine.
	Acquire(ctx context.Context) (done func(), err error)
}

// pass waits at l, and returns what gives the slot back, or nil.
func pass(ctx context.Context, l Limiter) (done func(), err error) {
	if s, ok := l.(SlotLimiter); ok {
		return s.Acquire(ctx)
	}
	return nil, l.Wait(ctx)
}

// Limited is a gate made of a Limiter. It is one gate for all hosts together, and does not
// learn whether a host is up. GateOptions.Limiter combines a Limiter with a [Gate].
type Limited struct{ Limiter Limiter }

// Acquire waits at the Limiter, and returns its error. Done gives the slot of a
// [SlotLimiter] back, and does nothing with any other Limiter. A second call of it does
// nothing.
func (l Limited) Acquire(ctx context.Context, _ string) (done func(backoff.Verdict), err error) {
	free, err := pass(ctx, l.Limiter)
	if err != nil {
		return nil, err
	}
	if free == nil {
		return func(backoff.Verdict) {}, nil
	}
	var once sync.Once
	return func(backoff.Verdict) { once.Do(free) }, nil
}
