package reconnect

import (
	"context"
	"net"
	"sync/atomic"
)

// turnstile lets one goroutine through at a time. Unlike a mutex it can be waited
// for with a context, and unlike a channel it costs little when nobody waits. Its
// zero value is free.
type turnstile struct {
	taken   atomic.Bool
	waiting atomic.Int32
	free    signal
}

// enter waits for its turn; the end of ctx or of life ends that.
func (t *turnstile) enter(ctx context.Context, life <-chan struct{}) error {
	if t.try() {
		return nil
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	for {
		free := t.free.wait()
		if t.try() {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-life:
			return net.ErrClosed
		}
	}
}

// try goes through if nobody is inside.
func (t *turnstile) try() bool { return t.taken.CompareAndSwap(false, true) }

func (t *turnstile) leave() {
	t.taken.Store(false)
	if t.waiting.Load() > 0 {
		t.free.broadcast()
	}
}
