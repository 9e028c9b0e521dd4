package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// looping is what adapters have in common that dial in a loop of their own, in a goroutine
// that reads each connection in its turn.
type looping[C any] struct {
	conn   atomic.Pointer[C] // the present one, or the last
	reader sync.WaitGroup
	cancel context.CancelFunc
}

// begin returns the context of the loop.
func (l *looping[C]) begin() context.Context {
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	return ctx
}

// Close ends the loop, and waits until it has ended.
func (l *looping[C]) Close() { l.cancel(); l.reader.Wait() }

// first is how the first connection of a loop ends: an adapter's open waits for it.
type first struct{ done chan error } // of one: the first outcome

func newFirst() first { return first{make(chan error, 1)} }

func (f first) succeed() { f.fail(nil) }

// fail notes the outcome, unless there is one.
func (f first) fail(err error) {
	select {
	case f.done <- err:
	default:
	}
}

// wait returns c when it is connected. If it is not, or ctx ends, wait closes it.
func (f first) wait(ctx context.Context, c client) (client, error) {
	var err error
	select {
	case err = <-f.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
