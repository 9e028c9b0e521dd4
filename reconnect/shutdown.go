package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redial-go/redial/conn"
)

// Shutdown ends the connection politely. It refuses new messages, and each SendWait and
// Write that waits. It waits until what Send has queued is written or ctx ends, with
// [WhenDownKeep] by further sessions too if this one is lost; if ctx never ends, Outbox.Age
// bounds that. Then it sends the peer a close frame with code 1000, or ends our direction of
// a [conn.HalfCloser], and waits for the answer, until Options.CloseTimeout has passed or
// ctx ends. Then it does what Close does, except that messages which came before the end can
// still be read.
//
// Shutdown returns when Done is closed, or when ctx ends. In the second case the end goes on
// without it: Outbox.OnReceipt may still be called until Done is closed, and [Trace.Overdue]
// reports a callback that holds up the end. The error is an *[UnsentError] with the messages
// that could not be sent, or the cause of ctx, or says why the close failed.
//
// A callback that calls Shutdown holds up the end for which Shutdown waits, and while
// OnMessage runs nobody reads the peer's answer. There start it in a goroutine, or call
// Close.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.life.leaving.Store(true)
	c.state.changed.Broadcast() // for AwaitSession
	c.sender.outbox().leave()
	c.sender.link.Load().wakePace()
	c.sender.old.Load().wakePace()
	undrained := c.sendQueued(ctx)
	err := c.farewell(ctx)
	c.life.End()
	select {
	case <-c.done.Up():
	case <-ctx.Done():
		if l := c.state.link.Load(); l != nil {
			l.cut(net.ErrClosed)
		}
		c.sender.outbox().close()
		if err == nil {
			err = c.unfinished(ctx)
		}
	}
	unsent, cut := c.sender.outbox().report()
	if len(unsent) == 0 {
		return err
	}
	if cut && undrained == nil {
		undrained = net.ErrClosed
	}
	return &UnsentError{Unsent: unsent, Err: undrained}
}

// unfinished returns why Shutdown does not wait for the end, or nil if all has ended.
func (c *Conn) unfinished(ctx context.Context) error {
	select {
	case <-c.done.Up():
		return nil
	default:
		return fmt.Errorf("reconnect: shutdown: the end goes on: %w", context.Cause(ctx))
	}
}

// sendQueued waits until nothing is queued, or returns why it no longer waits.
func (c *Conn) sendQueued(ctx context.Context) error {
	q := c.sender.outbox()
	for q.busy() {
		drained := q.drained.Wait()
		if !q.busy() {
			break
		}
		select {
		case <-drained:
		case <-c.done.Up():
			return net.ErrClosed
		case <-c.life.Done():
			return net.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// farewell closes the present link politely, if there is one, and so the one that it replaces.
func (c *Conn) farewell(ctx context.Context) error {
	l := c.sender.ready()
	if l == nil {
		return nil
	}
	limit := c.life.o.CloseTimeout
	if limit < 0 {
		limit = defaultCloseTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch err := l.slot.Acquire(ctx, &c.life.Context); {
	case errors.Is(err, net.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("reconnect: shutdown: a write is stuck: %w", err)
	}
	defer func() {
		c.life.End() // before another Shutdown tries the same
		l.slot.Release()
	}()
	if l.lost() || c.life.Ended() {
		return nil // because there is no peer any more
	}
	old := c.replacement.Load().endOverlap()
	err := l.sayGoodbye(ctx)
	old.awaitParted(ctx)
	if err != nil && !c.life.Ended() {
		return fmt.Errorf("reconnect: shutdown: %w", err)
	}
	return nil
}

// sayGoodbye sends the close frame, or ends our direction, and waits for the answer. If the
// answer is the end of the stream, the supervisor reads on until it comes.
func (l *link) sayGoodbye(ctx context.Context) error {
	half, ok := l.conn.(conn.HalfCloser)
	if !ok {
		return l.conn.Close(ctx, 1000, "")
	}
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
	<-l.Done()
	if err := l.why(nil); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
