package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redial-go/redial/conn"
)

// Shutdown ends the connection politely. New messages are refused, and so are
// Writes that wait for their turn; what Send has queued is written, also by a
// further session if messages are kept ([KeepSends]) and this one is lost, until
// ctx ends: a ctx that never does leaves it to Outbox.Age. Then the peer is told
// (code 1000, or the end of our direction of a [conn.HalfCloser], from which
// messages are received until it ends its own) and its answer awaited, for at most
// Options.CloseTimeout and until ctx ends; then it does as Close does. What came
// before the end can still be read.
//
// The error is an *[UnsentError] with the messages that could not be sent, the
// cause of ctx, or says why the peer could not be told. Called from a callback,
// Shutdown does not wait for a further session, nor for the end, and instead of an
// UnsentError there is one that says that messages are left.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.leaving.Store(true)
	c.outbox.leave()
	undrained := c.sendQueued(ctx)
	err := c.farewell(ctx)
	c.life.end()
	if c.callers.inside() { // what is left is told to Done
		return cmp.Or(undrained, err)
	}
	<-c.done
	if q := c.outbox; q != nil && len(q.unsent) > 0 {
		if q.cut && undrained == nil {
			undrained = net.ErrClosed
		}
		return &UnsentError{Unsent: q.unsent, Err: undrained}
	}
	return err
}

// sendQueued waits until nothing is queued, or says why it did not come to that.
func (c *Conn) sendQueued(ctx context.Context) error {
	if c.outbox == nil {
		return nil
	}
	inside := c.callers.inside()
	for c.outbox.busy() {
		drained, changed := c.outbox.drained.wait(), c.changed.wait()
		l := c.live.Load()
		switch {
		case !c.outbox.busy():
			return nil
		case l == nil && inside:
			return errUndrained
		}
		var severed <-chan struct{}
		if inside {
			if severed = l.severed.wait(); l.cause.Load() != nil {
				return errUndrained
			}
		}
		select {
		case <-drained:
		case <-changed:
		case <-severed:
		case <-c.done:
			return net.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// errUndrained is why Shutdown inside a callback, where no further session could
// come, has left messages.
var errUndrained = fmt.Errorf("reconnect: shutdown: messages are left: %w", ErrNotReady)

func (c *Conn) farewell(ctx context.Context) error {
	l := c.live.Load()
	if l == nil || c.o.CloseTimeout < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.CloseTimeout)
	defer cancel()
	switch err := c.slot.enter(ctx, c.life.done); {
	case errors.Is(err, net.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("reconnect: shutdown: a write is stuck: %w", err)
	}
	defer func() {
		c.life.end() // before another Shutdown tries the same
		c.slot.leave()
	}()
	if c.live.Load() != l || c.life.Err() != nil {
		return nil // nobody is left to tell
	}
	if err := c.part(ctx, l); err != nil && c.life.Err() == nil {
		return fmt.Errorf("reconnect: shutdown: %w", err)
	}
	return nil
}

// part tells the peer, and waits for its answer. Where that is the end of the
// stream the supervisor reads on until it comes, unless it is the caller.
func (c *Conn) part(ctx context.Context, l *link) error {
	half, ok := l.conn.(conn.HalfCloser)
	if !ok || c.callers.inside() {
		return l.conn.Close(ctx, 1000, "")
	}
	severed := l.severed.wait()
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(cut); l.cut(context.Cause(ctx)) })
	defer func() {
		if !stop() {
			<-cut
		}
	}()
	switch err := half.CloseWrite(); {
	case errors.Is(err, errors.ErrUnsupported):
		return l.conn.Close(ctx, 1000, "")
	case err != nil:
		return l.why(err)
	}
	if l.cause.Load() == nil {
		<-severed
	}
	if err := l.why(nil); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
