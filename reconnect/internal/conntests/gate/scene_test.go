package gate_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// oneGate is a Gate with one place.
type oneGate chan struct{}

func (g oneGate) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	select {
	case g <- struct{}{}:
		return func(backoff.Verdict) { <-g }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// yieldingGate is a Gate that admits a dial immediately or, once it is shut, after an hour or when the
// context of the wait is done.
type yieldingGate struct {
	scene.Notes
	shut atomic.Bool
}

func (g *yieldingGate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	g.Add("acquire " + host)
	if g.shut.Load() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
	}
	return func(v backoff.Verdict) { g.Add("done " + v.Class.String()) }, nil
}

// seenGate is a Gate that reports what was called.
type seenGate interface {
	reconnect.Gate
	All() []string
}
