package reconnect

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// link is one connection of a [Conn], from its dial to its loss.
type link struct {
	conn      conn.Conn
	n         uint64 // of the session
	delivered bool   // something of it is in the stream; the supervisor's, and OnSession's while that runs

	cause   atomic.Pointer[error] // the first cause of our own cut
	severed signal                // cause is set

	turn  atomic.Uint64 // whose turn it is at the reading end: see turn.go
	watch watch
	stall *stall // nil: data is not asked for
}

func newLink(c conn.Conn) *link { return &link{conn: c} }

// Close cuts the connection for Run.
func (l *link) Close() error { return l.conn.CloseNow() }

// cut ends the connection because of cause. The first cause is kept.
func (l *link) cut(cause error) {
	l.cause.CompareAndSwap(nil, &cause)
	l.severed.broadcast()
	l.conn.CloseNow()
}

// heard notes a message.
func (l *link) heard() {
	l.watch.heard()
	l.stall.heard()
}

// why returns the cause of our own cut, or else err, which is how it shows.
func (l *link) why(err error) error {
	if cause := l.cause.Load(); cause != nil {
		return *cause
	}
	return err
}

// sever cuts l, and lets nobody write on it any more.
func (c *Conn) sever(l *link, cause error) {
	l.cause.CompareAndSwap(nil, &cause) // first, because Status looks for it when live is nil
	c.live.CompareAndSwap(l, nil)
	l.cut(cause)
}

// opening is told by the supervisor of a new session, whose connection is a *link.
func (c *Conn) opening(got any, n uint64) {
	if c == nil {
		return
	}
	l := got.(*link)
	l.n = n
	if c.inbox != nil {
		c.inbox.hasten(false) // what OnSession delivers is told at once
	}
	c.counts.sessions.Store(n)
	c.link.Store(l)
	c.enter(StateOpening, func(s *Status) { s.Session = n })
}

// serve is one session: opening, ready, lost.
func (c *Conn) serve(ctx context.Context, l *link, s *Session) error {
	err := c.open(ctx, l, s)
	if cause := l.cause.Load(); err == nil && cause != nil {
		err = fmt.Errorf("open: %w", *cause)
	}
	if err == nil {
		c.ready(l, s)
		err = c.receive(ctx, l)
	}
	return c.lose(l, s, err)
}

// ready lets others write, and watches.
func (c *Conn) ready(l *link, s *Session) {
	if c.inbox != nil {
		c.inbox.collect(l.conn)
	}
	c.live.Store(l)
	c.outbox.up(l)
	c.enter(StateReady, func(st *Status) { st.Err = nil })
	s.Ready()
	l.stall = newStall(c, l)
	l.watch.start(c, l)
	l.stall.start()
}

// lose cleans up after a session, and tells the reader of the loss.
func (c *Conn) lose(l *link, s *Session, err error) error {
	c.sever(l, err)
	l.watch.stop()
	l.stall.stop(err)
	c.enter(StateWaiting, func(st *Status) { st.Err = err })
	c.outbox.down(l, err)
	_, ready := s.readyAt()
	if !ready {
		c.counts.failures.Add(1)
	}
	if ready || l.delivered {
		c.counts.lost.Add(1)
		c.seam(&Seam{Session: l.n, Cause: err, Lost: 1})
	}
	if c.leaving.Load() && !c.outbox.draining() {
		return backoff.Permanent(err)
	}
	return err
}

// seam tells the reader that a connection was lost.
func (c *Conn) seam(s *Seam) {
	switch {
	case c.o.OnSeam != nil:
		c.o.OnSeam(s)
	case c.o.OnMessage == nil && c.inbox != nil:
		c.inbox.lose(s)
	}
}

// open lets OnSession make the connection ready, in a goroutine of its own, so
// that the stack which that needs is not the one that waits for messages ever
// after.
func (c *Conn) open(ctx context.Context, l *link, s *Session) error {
	if c.o.OnSession == nil {
		return nil
	}
	cancel := func() {}
	if c.o.OpenTimeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, c.o.OpenTimeout, &OpenTimeoutError{c.o.OpenTimeout})
	}
	defer cancel()
	var cuts sync.WaitGroup
	cuts.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer cuts.Done()
		l.cut(context.Cause(ctx))
	})
	o := &Opening{Session: s.N, Cause: s.Cause, Downtime: s.Downtime, c: c, l: l, ctx: ctx}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.callers.enter()
		defer c.callers.leave()
		err = c.o.OnSession(ctx, o)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		c.trace().waitFor(done, "OnSession", c)
	}
	o.over.Store(true)
	if stop() {
		cuts.Done()
	} else {
		cuts.Wait()
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

func (c *Conn) trace() *Trace { return c.o.Run.Trace }

// OpenTimeoutError is the cause of the end of a session whose OnSession was not
// done in time. It is a timeout, so the default verdict on it is Overload.
type OpenTimeoutError struct {
	Limit time.Duration // Options.OpenTimeout
}

func (e *OpenTimeoutError) Error() string { return fmt.Sprintf("not ready within %v", e.Limit) }

// Timeout reports true.
func (e *OpenTimeoutError) Timeout() bool { return true }

// Is reports whether target is [context.DeadlineExceeded].
func (e *OpenTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
