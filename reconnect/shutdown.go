package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// Shutdown ends the connection politely, in these steps:
//
//  1. It rejects new messages, and each SendWait and Write that waits.
//  2. It waits until the messages that Send has queued are written, with [WhenDownKeep] by further
//     sessions too. Outbox.Age bounds that.
//  3. It sends a close frame with code 1000, or ends our direction of a [conn.HalfCloser], and waits for
//     the response, for at most Options.CloseTimeout.
//  4. It does what Close does, except that messages received before can still be read.
//
// Messages are received until the peer responds. If the inbox is full, and is not read for 1 s, the rest
// is discarded. It is also discarded after CloseTimeout, if the connection is neither a
// [conn.CloseStarter] nor a HalfCloser, and, once the old session of a rotation has responded, by a next
// session that becomes ready during the close.
//
// Shutdown returns when Done is closed, or when ctx is done, which ends every wait. In the second case
// the shutdown continues in the background, and Outbox.OnReceipt may still be called. The error is an
// *[UnsentError] with the messages that could not be sent, or the cause of ctx, or says why the close
// failed.
//
// A callback delays the end for which Shutdown waits: there, start Shutdown in a goroutine, or call
// Close.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.life.Leaving.Store(true)
	c.life.Changed.Broadcast() // for AwaitSession
	c.sender.outbox.Load().Leave()
	c.sender.link.Load().Wake()
	c.sender.old.Load().Wake()
	undrained := c.sendQueued(ctx)
	err := c.farewell(ctx)
	c.life.End()
	select {
	case <-c.done.Up():
	case <-ctx.Done():
		if l := c.state.link.Load(); l != nil {
			l.Cut(net.ErrClosed)
		}
		c.sender.outbox.Load().Close()
		if err == nil && !c.done.IsUp() {
			err = fmt.Errorf("reconnect: shutdown: the end goes on: %w", context.Cause(ctx))
		}
	}
	unsent, cut := c.sender.outbox.Load().Report()
	if len(unsent) == 0 {
		return err
	}
	if cut && undrained == nil {
		undrained = net.ErrClosed
	}
	e := &UnsentError{Err: undrained}
	for _, r := range unsent {
		e.Unsent = append(e.Unsent, receiptOf(&r))
	}
	return e
}

// sendQueued waits until nothing is queued, or returns why it no longer waits.
func (c *Conn) sendQueued(ctx context.Context) error {
	q := c.sender.outbox.Load()
	for q.Busy() {
		drained := q.Drained()
		if !q.Busy() {
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

// goodbyeLimit returns how long Shutdown waits for the answer to a close frame.
func (l *lifetime) goodbyeLimit() time.Duration {
	if l.o.CloseTimeout < 0 {
		return defaultCloseTimeout
	}
	return l.o.CloseTimeout
}

// sayGoodbye closes l politely if farewell ran before l was attached, such as when it closed the session that l
// replaces, and lets the supervisor read until the answer. The caller must have attached l to the sender.
func (k *keeper) sayGoodbye(l *served) {
	s := &k.c.sender
	s.mu.Lock()
	late := s.parting && s.parted != &l.Link
	s.mu.Unlock()
	if late {
		l.Retire(net.ErrClosed, backoff.ReasonShutdown, k.c.life.goodbyeLimit())
	}
}

// lastLink returns the link that farewell closes, or nil if no session is ready. The first call chooses it,
// and what is attached after that is closed by sayGoodbye. So each link is closed once: a second close would
// look like the end of the session, and end the Conn before the peer's answers are read.
func (s *sender) lastLink() *link.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parting {
		s.parting, s.parted = true, s.readyLink()
	}
	return s.parted
}

// farewell closes the present link politely, if there is one, and so the one that it replaces.
func (c *Conn) farewell(ctx context.Context) error {
	l := c.sender.lastLink()
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.life.goodbyeLimit())
	defer cancel()
	switch err := l.Acquire(ctx); {
	case errors.Is(err, net.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("reconnect: shutdown: a write is stuck: %w", err)
	}
	defer func() {
		c.life.End() // before another Shutdown tries the same
		l.Release()
	}()
	if l.Lost() || c.life.Ended() {
		return nil // because there is no peer any more
	}
	old := c.replacement.Load().endOverlap()
	err := l.Goodbye(ctx)
	old.AwaitParted(ctx)
	if err != nil && !c.life.Ended() {
		return fmt.Errorf("reconnect: shutdown: %w", err)
	}
	return nil
}
