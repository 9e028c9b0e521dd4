package reconnect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Opening is a new connection, of which [Options.OnSession] has sole use. One goroutine may
// use it, until OnSession returns. After that Read, Write, Deliver and AwaitReceipts return an
// error.
type Opening struct {
	Session  uint64        // the number of the session
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // from the loss of the last ready session, or from the start, to this dial's success

	life     *lifetime
	receiver *receiver
	outbox   *outbox
	l        *link
	ctx      context.Context
	over     atomic.Bool
}

// Read returns the next message, in a slice of its own, which belongs to the caller. An
// error means that the connection is lost; return it from OnSession. Read ends when the
// context of OnSession does, because that cuts the connection.
func (o *Opening) Read() (conn.Message, error) {
	if err := o.ended(); err != nil {
		return conn.Message{}, err
	}
	m, err := o.l.conn.Read(nil)
	if err != nil {
		return m, o.failed(err)
	}
	o.life.counts.received(m)
	return m, nil
}

// Write sends a message, whose data belongs to the caller again when Write returns. After an
// error the connection is lost, unless it is [conn.ErrBadMessage]. Write ends as Read does.
func (o *Opening) Write(m conn.Message) error {
	if err := o.ended(); err != nil {
		return err
	}
	if err := o.l.conn.Write(m); err != nil {
		if errors.Is(err, conn.ErrBadMessage) {
			return err
		}
		return o.failed(err)
	}
	o.life.counts.written(m)
	return nil
}

// ended returns why the Opening cannot be used any more, or nil if it can.
func (o *Opening) ended() error {
	if o.over.Load() {
		return errOver
	}
	return o.l.why(nil)
}

// failed notes that the connection has failed, unless the peer has closed it with a code,
// because that is an answer.
func (o *Opening) failed(err error) error {
	var answer interface{ CloseCode() int }
	o.l.broken = !errors.As(err, &answer)
	return o.l.why(err)
}

// Deliver passes a message on to the reader of the Conn, because what comes between a
// subscription and its answer is part of the stream. It returns when a copy of the message
// is in the inbox, or when OnMessage, which it calls, has returned. It waits for room in a
// full inbox if the policy is OverflowBlock, until the context of OnSession ends.
func (o *Opening) Deliver(m conn.Message) error {
	if o.over.Load() {
		return errOver
	}
	return o.receiver.deliver(o.ctx, o.l, m)
}

// AwaitReceipts waits until Outbox.OnReceipt has returned for every message that has its
// fate, including all that earlier sessions wrote or tried. After it an application's own
// record of what was sent is complete, so that it can decide what to send again. Messages
// that are still queued are written when OnSession has returned. AwaitReceipts ends when the
// context of OnSession does, with its cause.
func (o *Opening) AwaitReceipts() error {
	if o.over.Load() {
		return errOver
	}
	if o.outbox == nil {
		return nil
	}
	return o.outbox.reporter.await(o.ctx)
}

// Conn returns the connection itself, for what else it may know, such as the subprotocol of
// a [conn.WebSocket]. Use the methods of the Opening to read and write.
func (o *Opening) Conn() conn.Conn { return o.l.conn }

var errOver = errors.New("reconnect: Opening used after OnSession returned")

// open calls OnSession in a goroutine of its own, because the stack that it needs should not
// be the one that waits for messages afterwards.
func (c *Conn) open(l *link, s *Session) error {
	if c.life.o.OnSession == nil {
		return nil
	}
	var ctx context.Context = l
	cancel := func() {}
	if limit := c.life.o.OpenTimeout; limit > 0 {
		ctx, cancel = context.WithTimeoutCause(l, limit, &OpenTimeoutError{limit})
	}
	defer cancel()
	var cuts sync.WaitGroup
	cuts.Add(1)
	stop := xsync.AfterFunc(ctx, func() { // joined below
		defer cuts.Done()
		if !l.Ended() {
			l.cut(context.Cause(ctx))
		}
	})
	o := &Opening{
		Session: s.Number, Cause: s.Cause, Downtime: s.Downtime,
		life: &c.life, receiver: &c.receiver, outbox: c.sender.outbox, l: l, ctx: ctx,
	}
	var err error
	call := xsync.Go(func() { err = c.life.o.OnSession(ctx, o) })
	select {
	case <-call.Done():
	case <-ctx.Done():
		c.life.waitFor(call.Done(), "OnSession")
	}
	o.over.Store(true)
	if stop() {
		cuts.Done()
	} else {
		cuts.Wait()
		err = l.why(context.Canceled)
	}
	switch {
	case !call.Returned():
		err = fmt.Errorf("OnSession: %w", errNotReturned)
	case err == nil && l.lost():
		err = l.why(nil)
	case err == nil:
		return nil
	}
	return fmt.Errorf("open: %w", err)
}

// OpenTimeoutError is the cause of the end of a session whose OnSession took too long. It is
// a timeout and [context.DeadlineExceeded], so that its default verdict is ClassOverload.
type OpenTimeoutError struct {
	Limit time.Duration // Options.OpenTimeout
}

func (e *OpenTimeoutError) Error() string { return fmt.Sprintf("not ready within %v", e.Limit) }

// Timeout reports true.
func (e *OpenTimeoutError) Timeout() bool { return true }

// Is reports whether target is [context.DeadlineExceeded].
func (e *OpenTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
