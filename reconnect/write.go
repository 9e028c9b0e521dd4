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
// Options.Down says. ctx ends that wait, and the wait for other writes; it never
// ends a write under way, which is the matter of the connection's write timeout.
// Inside a callback Write does not wait for a session, since none could come.
func (c *Conn) Write(ctx context.Context, m conn.Message) error {
	for {
		l, err := c.acquire(ctx)
		if err != nil {
			return &WriteError{Fate: Dropped, Err: err}
		}
		err = l.conn.Write(m)
		c.slot.leave()
		if err == nil {
			c.counts.written(m)
			return nil
		}
		if errors.Is(err, conn.ErrBadMessage) {
			return &WriteError{Fate: Dropped, Err: err}
		}
		begun := !errors.Is(err, conn.ErrNotWritten)
		err = l.why(err)
		c.sever(l, err)
		switch {
		case begun:
			return &WriteError{Fate: Unknown, Session: l.n, Err: err}
		case c.o.Down == FailWrites:
			return &WriteError{Fate: Dropped, Session: l.n, Err: err}
		}
	}
}

// acquire returns the ready link, with the right to write on it.
func (c *Conn) acquire(ctx context.Context) (*link, error) {
	for {
		if c.leaving.Load() || c.closed.Load() {
			return nil, net.ErrClosed
		}
		l := c.live.Load()
		if l == nil {
			if err := c.awaitSession(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err := c.slot.enter(ctx, c.life.done); err != nil {
			return nil, err
		}
		if c.live.Load() == l && !c.leaving.Load() {
			return l, nil
		}
		c.slot.leave()
	}
}

// writeOn sends m by l, for a probe.
func (c *Conn) writeOn(ctx context.Context, l *link, m conn.Message) error {
	if err := c.slot.enter(ctx, c.life.done); err != nil {
		return err
	}
	defer c.slot.leave()
	err := l.conn.Write(m)
	if err == nil {
		c.counts.written(m)
	}
	return err
}

// awaitSession waits for a change that may have brought a session, or says why
// there is no waiting for one.
func (c *Conn) awaitSession(ctx context.Context) error {
	changed := c.changed.wait()
	status := c.Status()
	switch {
	case c.live.Load() != nil:
		return nil
	case status.State == StateClosed:
		return net.ErrClosed
	case c.o.Down == FailWrites:
		if status.Err != nil {
			return fmt.Errorf("%w (%v): %w", ErrNotReady, status.State, status.Err)
		}
		return fmt.Errorf("%w (%v)", ErrNotReady, status.State)
	case c.callers.inside():
		return fmt.Errorf("%w, and none can come while a callback runs", ErrNotReady)
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.life.done:
		return net.ErrClosed
	}
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
