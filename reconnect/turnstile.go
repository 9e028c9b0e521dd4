package reconnect

import (
	"context"
	"net"
	"sync/atomic"
)

// turnstile lets one goroutine through at a time. Unlike a mutex it can be waited
// for with a context, and unlike a channel it costs little when nobody waits. It is
// not fair: who leaves and comes back at once is likely to be ahead of all who
// wait, but for those of enterFirst. Its zero value is free.
type turnstile struct {
	taken   atomic.Bool
	waiting atomic.Int32
	urgent  atomic.Int32 // of those who wait: who go first
	free    signal
}

// enter waits for its turn; the end of ctx or of life ends that.
func (t *turnstile) enter(ctx context.Context, life <-chan struct{}) error {
	if t.try() {
		return nil
	}
	return t.await(ctx, life, t.try)
}

// enterFirst is enter for what must not be put off for as long as others come back
// at once.
func (t *turnstile) enterFirst(ctx context.Context, life <-chan struct{}) error {
	t.urgent.Add(1)
	err := t.await(ctx, life, t.take)
	t.urgent.Add(-1)
	if err != nil {
		t.free.broadcast() // to those who let us go first
	}
	return err
}

// await waits until through succeeds.
func (t *turnstile) await(ctx context.Context, life <-chan struct{}, through func() bool) error {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	for {
		free := t.free.wait()
		if through() {
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

// try goes through if nobody is inside, or wants to go first.
func (t *turnstile) try() bool { return t.urgent.Load() == 0 && t.take() }

func (t *turnstile) take() bool { return t.taken.CompareAndSwap(false, true) }

func (t *turnstile) leave() {
	t.taken.Store(false)
	if t.waiting.Load() > 0 {
		t.free.broadcast()
	}
}
