package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redial-go/redial/conn"
)

// Shutdown ends the connection politely. New messages are refused, and so are
// Writes that wait for their turn; what Send has queued is written, also by a
// further session if messages are kept ([WhenDownKeep]) and this one is lost, until
// ctx ends: a ctx that never does leaves it to Outbox.Age. Then the peer is told
// (code 1000, or the end of our direction of a [conn.HalfCloser], from which
// messages are received until it ends its own) and its answer awaited, for at most
// Options.CloseTimeout and until ctx ends; then it does as Close does. What came
// before the end can still be read.
//
// Shutdown returns when Done is closed, or when ctx ends: then the end goes on
// without it, Outbox.OnReceipt may still be called until Done is closed, and a callback
// that holds up the end is reported by [Trace.Overdue]. The error is an
// *[UnsentError] with the messages that could not be sent, the cause of ctx, or says
// why the peer could not be told. In a callback it cannot see the end, and while
// OnMessage runs nobody reads the peer's answer: start it in a goroutine there, or
// call Close.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.life.leaving.Store(true)
	c.sender.outbox.leave()
	undrained := c.sendQueued(ctx)
	err := c.farewell(ctx)
	c.life.End()
	select {
	case <-c.done:
	case <-ctx.Done():
		if l := c.state.link.Load(); l != nil {
			l.cut(net.ErrClosed)
		}
		c.sender.outbox.close()
		if err == nil {
			err = c.unfinished(ctx)
		}
	}
	unsent, cut := c.sender.outbox.report()
	if len(unsent) == 0 {
		return err
	}
	if cut && undrained == nil {
		undrained = net.ErrClosed
	}
	return &UnsentError{Unsent: unsent, Err: undrained}
}

// unfinished returns why Shutdown does not wait for the end, nil if there is
// nothing to wait for.
func (c *Conn) unfinished(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	default:
		return fmt.Errorf("reconnect: shutdown: the end goes on: %w", context.Cause(ctx))
	}
}

// sendQueued waits until nothing is queued, or says why it did not come to that.
func (c *Conn) sendQueued(ctx context.Context) error {
	q := c.sender.outbox
	for q.busy() {
		drained := q.drained.Wait()
		if !q.busy() {
			break
		}
		select {
		case <-drained:
		case <-c.done:
			return net.ErrClosed
		case <-c.life.Done():
			return net.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// farewell tells the peer, and waits for its answer.
func (c *Conn) farewell(ctx context.Context) error {
	l := c.sender.ready()
	if l == nil || c.life.o.CloseTimeout < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.life.o.CloseTimeout)
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
		return nil // nobody is left to tell
	}
	if err := l.sayGoodbye(ctx); err != nil && !c.life.Ended() {
		return fmt.Errorf("reconnect: shutdown: %w", err)
	}
	return nil
}

// sayGoodbye tells the peer, and waits for its answer. Where that is the end of the
// stream the supervisor reads on until it comes.
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
