package main

import (
	"context"
	"fmt"
)

// box takes messages, looks at each, and says when all have come.
type box struct {
	size  int
	first byte         // of each message
	each  func() error // called for each; nil: nothing
	done  chan error   // of one

	n, want int // the reader's, once there is something to wait for
}

func newBox(size int) *box {
	return &box{size: size, first: 'D', done: make(chan error, 1)}
}

// expect is called before the messages are asked for.
func (b *box) expect(n int) { b.n, b.want = 0, n }

// take is called by the reader.
func (b *box) take(p []byte) {
	if len(p) != b.size || p[0] != b.first || b.size > 1 && p[b.size-1] != byte(b.size-1) {
		b.fail(fmt.Errorf("message %d is not what was sent: %d bytes instead of %d, or others", b.n, len(p), b.size))
		return
	}
	if b.n++; b.n > b.want {
		b.fail(fmt.Errorf("more than %d messages came", b.want))
		return
	}
	if b.each != nil {
		if err := b.each(); err != nil {
			b.fail(err)
			return
		}
	}
	if b.n == b.want {
		b.fail(nil)
	}
}

// fail ends a wait; nil says that all have come.
func (b *box) fail(err error) {
	select {
	case b.done <- err:
	default:
	}
}

// wait waits until all have come, something is wrong, or ctx ends.
func (b *box) wait(ctx context.Context) error {
	select {
	case err := <-b.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for %d messages: %w", b.want, context.Cause(ctx))
	}
}
