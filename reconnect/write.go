package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redial-go/redial/conn"
)

// Write sends m by the ready session. Nil means that it was written: whole,
// handed to the kernel. Any other outcome is a *[WriteError] that says whether m
// was dropped, of which not a byte has left, or whether its fate is unknown,
// since the connection died while it was being written; it is never sent twice.
//
// While no session is ready Write fails with [ErrNotReady] or waits, as
// Options.Down says; behind messages that [Conn.Send] has queued it waits for its
// turn. ctx ends these waits, and that for other writes; it never ends a write
// under way, which is the matter of the connection's write timeout. Inside a
// callback Write does not wait for a session, since none could come.
func (c *Conn) Write(ctx context.Context, m conn.Message) error {
	for {
		l, err := c.acquire(ctx)
		switch {
		case err != nil:
			return c.unwritten(Dropped, 0, err)
		case l == nil:
			return c.writeInTurn(ctx, m)
		}
		err = l.conn.Write(m)
		c.slot.leave()
		if err == nil {
			c.counts.written(m)
			return nil
		}
		if errors.Is(err, conn.ErrBadMessage) {
			return c.unwritten(Dropped, 0, err)
		}
		begun := !errors.Is(err, conn.ErrNotWritten)
		err = l.why(err)
		c.sever(l, err)
		switch {
		case begun:
			return c.unwritten(Unknown, l.n, err)
		case c.o.Down == FailWrites:
			return c.unwritten(Dropped, l.n, err)
		}
	}
}

func (c *Conn) unwritten(fate Fate, session uint64, err error) error {
	c.counts.settled(fate)
	return &WriteError{Fate: fate, Session: session, Err: err}
}

// acquire returns the ready link, with the right to write on it; or nil, if the
// message has to queue.
func (c *Conn) acquire(ctx context.Context) (*link, error) {
	for {
		if c.leaving.Load() || c.closed.Load() {
			return nil, net.ErrClosed
		}
		l := c.live.Load()
		switch {
		case l == nil && c.o.Down == FailWrites:
			return nil, c.refusal()
		case l == nil || c.outbox.busy():
			return nil, nil
		}
		switch {
		case c.outbox != nil && !c.slot.try():
			return nil, nil // in the queue nobody overtakes it
		case c.outbox == nil:
			if err := c.slot.enter(ctx, c.life.done); err != nil {
				return nil, err
			}
		}
		if c.live.Load() == l && !c.leaving.Load() {
			return l, nil
		}
		c.slot.leave()
	}
}

// writeInTurn queues m and waits for its fate.
func (c *Conn) writeInTurn(ctx context.Context, m conn.Message) error {
	e, l, err := c.outbox.join(m, c.callers.inside())
	if err != nil {
		return c.unwritten(Dropped, 0, err)
	}
	if why := c.awaitTurn(ctx, e, l); why != nil && c.outbox.withdraw(e) {
		return c.unwritten(Dropped, 0, why)
	}
	<-e.written
	if r := &e.receipt; r.Fate != Written {
		return &WriteError{Fate: r.Fate, Session: r.Session, Err: r.Err}
	}
	return nil
}

// awaitTurn waits until e has its fate, or says why it should be withdrawn.
func (c *Conn) awaitTurn(ctx context.Context, e *entry, l *link) error {
	var severed <-chan struct{}
	if e.hasty {
		severed = l.severed.wait()
		if l.cause.Load() != nil {
			return l.why(nil)
		}
	}
	select {
	case <-e.written:
		return nil
	case <-severed:
		return l.why(ErrNotReady)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.life.done:
		return net.ErrClosed
	}
}

// writeOn sends m by l, for a probe.
func (c *Conn) writeOn(ctx context.Context, l *link, m conn.Message) error {
	if err := c.slot.enterFirst(ctx, c.life.done); err != nil {
		return err
	}
	defer c.slot.leave()
	err := l.conn.Write(m)
	if err == nil {
		c.counts.written(m)
	}
	return err
}

// WriteError says what became of a message that was not written. It is told by
// errors.Is whether that was for want of a session ([ErrNotReady]), a context, or
// because the Conn is closed ([net.ErrClosed]).
type WriteError struct {
	Fate    Fate
	Session uint64 // by which it was tried; 0: none
	Err     error
}

func (e *WriteError) Error() string { return fmt.Sprintf("message %v: %v", e.Fate, e.Err) }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Fate is what became of a message. Each has exactly one.
type Fate uint8

// The fates.
const (
	Written Fate = iota // whole, handed to the kernel
	Dropped             // not a byte of it was sent; it may be sent again
	Unknown             // its connection died while it was being written
)

func (f Fate) String() string {
	switch f {
	case Written:
		return "written"
	case Dropped:
		return "dropped"
	default:
		return "unknown"
	}
}

// ErrNotReady is why a message was dropped while no session was ready.
var ErrNotReady = errors.New("no session is ready")
