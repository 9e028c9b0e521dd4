package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// sender is the writing half of a [Conn].
type sender struct {
	life  *lifetime
	state *state
	link  atomic.Pointer[link.Link] // by which to write; nil: none is ready; written under mu
	old   atomic.Pointer[link.Link] // the link that it replaces, for messages of that session; nil: none; likewise

	receipts watch.Calls // times OnReceipt

	outbox atomic.Pointer[outbox.Outbox] // nil until a message queues, because most connections only receive
	last   uint64                        // the last session that was lost; guarded by mu
	mu     sync.Mutex                    // held while outbox is made, and while link changes; never while waiting

	parting bool       // Shutdown closes the ready session: see lastLink; guarded by mu
	parted  *link.Link // its link, or nil if no session was ready; guarded by mu
}

// queue returns the outbox, which the first call makes.
func (s *sender) queue() *outbox.Outbox {
	if q := s.outbox.Load(); q != nil {
		return q
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.outbox.Load(); q != nil {
		return q
	}
	closed := s.state.newest().State == StateClosed
	q := outbox.New(s.options(), &s.life.Life, s.link.Load(), s.old.Load(), s.last, closed)
	s.outbox.Store(q)
	return q
}

// readyLink returns the link by which to write, or nil if there is none.
func (s *sender) readyLink() *link.Link {
	l := s.link.Load()
	if l == nil || l.Lost() {
		return nil
	}
	return l
}

// phase is what a message that is to be written finds.
type phase uint8

const (
	phaseReady   phase = iota // a link for it
	phaseBetween              // none, because the session was closed so that another can take its place
	phaseNone                 // none
)

// linkFor returns the link by which a message for session may be written, or nil, and what that means. Session 0
// is any.
func (s *sender) linkFor(session uint64) (*link.Link, phase) {
	bridging := s.life.Bridging.Load() // before the link: it is set before the old session ends
	l := s.readyLink()
	if l != nil && session != 0 && l.Session != session {
		if l = s.old.Load(); l != nil && (l.Session != session || l.Lost()) {
			l = nil
		}
	}
	switch {
	case l != nil:
		return l, phaseReady
	case bridging || s.life.Bridging.Load(): // it is cleared once the next session is there
		return nil, phaseBetween
	}
	return nil, phaseNone
}

// awaitChange waits until changed is closed, or returns why there is nothing to wait for any more.
func (s *sender) awaitChange(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return net.ErrClosed
	}
}

// attach lets messages of Write and of Send be written by l, from the same moment on: otherwise a Send
// could go by the session before after a Write has gone by l.
func (s *sender) attach(l *link.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outbox.Load().Attach(l, func() {
		if was := s.link.Load(); was != nil && !was.Lost() {
			s.old.Store(was) // first, so that linkFor finds it all the time
		}
		s.link.Store(l)
	})
}

// detach ends the writing by l, which was cut because of cause. keeps decides about messages that could
// wait for another session.
func (s *sender) detach(l *link.Link, cause error, keeps outbox.Keeps) {
	s.mu.Lock()
	s.link.CompareAndSwap(l, nil)
	s.old.CompareAndSwap(l, nil)
	s.last = max(s.last, l.Session)
	q := s.outbox.Load()
	s.mu.Unlock()
	q.Detach(l, cause, keeps)
}

// end ends the outbox for good. The state is StateClosed.
func (s *sender) end() {
	s.mu.Lock() // because the outbox may be in the making
	q := s.outbox.Load()
	s.mu.Unlock()
	s.receipts.Stop() // from here on q reports a call that is overdue
	q.End()
}

// Write sends m by the ready session, and never twice. If the error is nil the whole message was handed
// to the kernel. Otherwise it is a *[WriteError] with the fate of m. The data of m belongs to the caller
// again when Write returns.
//
// While no session is ready Write fails, with [ErrNotReady], or waits, as Options.WhenDown says. It also
// waits for other writes, and behind the messages that [Conn.Send] has queued. If ctx is done during
// these waits, nothing is written. A write in progress continues, bounded by the connection's own write
// timeout. In a callback pass the callback's context.
func (c *Conn) Write(ctx context.Context, m conn.Message) error { return c.sender.write(ctx, 0, m) }

// WriteTo is Write by one session only, such as that of the message to which m responds
// ([Message.Session]). If the session has ended, or never was, m is dropped, with [ErrSessionLost].
// Session 0 is any session.
func (c *Conn) WriteTo(ctx context.Context, session uint64, m conn.Message) error {
	return c.sender.write(ctx, session, m)
}

// AwaitSession returns the number of the session by which Write would send now, to pass to
// [Conn.WriteTo]. While no session is ready it fails, with [ErrNotReady], or waits, as Write does: in a
// callback pass the callback's context. Its other errors are that of [Conn.Err], from the call of Close or
// Shutdown on, and then the cause of ctx.
func (c *Conn) AwaitSession(ctx context.Context) (session uint64, err error) {
	return c.sender.awaitSession(ctx)
}

// awaitSession is AwaitSession. It makes the channel for the wait only if it has to wait.
func (s *sender) awaitSession(ctx context.Context) (uint64, error) {
	var changed <-chan struct{}
	for {
		l, phase := s.linkFor(0)
		switch {
		case s.life.Leaving.Load() || s.life.Closed.Load() || s.life.Ended():
			return 0, net.ErrClosed
		case l != nil && ctx.Err() == nil:
			return l.Session, nil
		}
		switch status := s.state.newest(); {
		case status.State == StateClosed:
			return 0, status.Err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case s.failsFast(ctx) && phase == phaseNone:
			return 0, s.refusal(ctx)
		case changed == nil: // look again, now that no change can be missed
			changed = s.life.Changed.Wait()
			continue
		}
		_ = s.awaitChange(ctx, changed) // the loop finds the error
		changed = nil
	}
}

// write is WriteTo; session 0 is any.
func (s *sender) write(ctx context.Context, session uint64, m conn.Message) error {
	for {
		l, err := s.acquire(ctx, session)
		switch {
		case err != nil:
			return s.unwritten(FateDropped, 0, err)
		case l == nil:
			return s.writeInTurn(ctx, session, m)
		}
		if n, err := l.MayWrite(ctx, 1, s.life.Leaving.Load); n == 0 {
			l.Release()
			if err == nil || l.Lost() && ctx.Err() == nil && s.mayWait(ctx) {
				continue
			}
			if ctx.Err() != nil || !l.Lost() {
				return s.unwritten(FateDropped, 0, err)
			}
			return s.unwritten(FateDropped, l.Session, outbox.AsLoss(session, err))
		}
		err = l.Conn.Write(m)
		l.Wrote(1)
		l.Release()
		if err == nil {
			s.life.Counts.Wrote(m)
			return nil
		}
		if errors.Is(err, conn.ErrBadMessage) {
			return s.unwritten(FateDropped, 0, err)
		}
		begun := !errors.Is(err, conn.ErrNotWritten)
		l.Fail(err)
		switch {
		case begun:
			return s.unwritten(FateUnknown, l.Session, outbox.AsLoss(0, l.Cause(err)))
		case !s.mayWait(ctx):
			return s.unwritten(FateDropped, l.Session, outbox.AsLoss(session, l.Cause(err)))
		}
	}
}

// mayWait reports whether a Write whose session was lost before it began tries another one:
// because WhenDown says so, or because that session was replaced.
func (s *sender) mayWait(ctx context.Context) bool {
	_, phase := s.linkFor(0)
	return phase != phaseNone || !s.failsFast(ctx)
}

// failsFast reports whether a Write with ctx does not wait for a session: because WhenDown says so,
// or because it is called in OnReceipt, for which the OnSession of that session may wait.
func (s *sender) failsFast(ctx context.Context) bool {
	return s.life.o.WhenDown == WhenDownFail || s.inReceipt(ctx)
}

// refusal returns why there is no session for a Write that does not wait for one.
func (s *sender) refusal(ctx context.Context) error {
	err := s.state.refusal()
	if s.inReceipt(ctx) && s.life.o.WhenDown != WhenDownFail && errors.Is(err, ErrNotReady) {
		return fmt.Errorf("%w; in OnReceipt nothing waits for a session: write in another goroutine", err)
	}
	return err
}

func (s *sender) unwritten(fate Fate, session uint64, err error) error {
	outbox.Fate(fate).Count(&s.life.Counts)
	return &WriteError{Fate: fate, Session: session, Err: err}
}

// acquire returns the ready link and holds its slot, so that the caller may write; or it
// returns nil, if the message has to queue.
func (s *sender) acquire(ctx context.Context, session uint64) (*link.Link, error) {
	var changed <-chan struct{}
	for {
		l, phase := s.linkFor(session)
		q := s.outbox.Load()
		switch {
		case s.life.Leaving.Load() || s.life.Closed.Load():
			return nil, net.ErrClosed
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case l == nil && session != 0 && s.hasEnded(session):
			return nil, outbox.SessionLost(session)
		case l == nil && session != 0 && s.failsFast(ctx) && s.readyLink() != nil:
			return nil, fmt.Errorf("session %d: %w", session, ErrNotReady)
		case l == nil && s.failsFast(ctx) && phase == phaseBetween && changed == nil:
			changed = s.life.Changed.Wait()
			continue // look again, now that no change can be missed
		case l == nil && s.failsFast(ctx) && phase == phaseBetween:
			if err := s.awaitChange(ctx, changed); err != nil {
				return nil, err
			}
			changed = nil
			continue
		case l == nil && s.failsFast(ctx):
			return nil, s.refusal(ctx)
		case l == nil || q.Busy():
			return nil, nil
		case l.TryAcquire():
		case q != nil || s.life.o.WhenDown != WhenDownFail || s.life.o.Outbox.OnReceipt != nil:
			return nil, nil // because in the queue no other message overtakes it
		default: // this program may never queue a message: see TestAWriteWithoutAnOutboxAllocatesNothing
			if err := l.Acquire(ctx); err != nil {
				return nil, err
			}
		}
		if now, _ := s.linkFor(session); now == l && !s.life.Leaving.Load() {
			return l, nil
		}
		l.Release()
	}
}

// hasEnded reports whether a session that is not ready has ended, or has never been. The newest one has ended when its link
// is lost: detach, which sets last, comes a moment later.
func (s *sender) hasEnded(session uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.link.Load()
	return session != s.life.Counts.Sessions.Load() || session <= s.last || l != nil && l.Session == session && l.Lost()
}

// writeInTurn queues m and waits for its fate.
func (s *sender) writeInTurn(ctx context.Context, session uint64, m conn.Message) error {
	q := s.queue()
	w, l, err := q.Join(m, session, s.failsFast(ctx))
	if err != nil {
		return s.unwritten(FateDropped, 0, err)
	}
	if why := s.awaitTurn(ctx, w, l); why != nil && q.Withdraw(w, why) {
		_, session, _ := w.Outcome()
		return s.unwritten(FateDropped, session, why)
	}
	<-w.Done()
	if fate, session, err := w.Outcome(); Fate(fate) != FateWritten {
		return &WriteError{Fate: Fate(fate), Session: session, Err: err}
	}
	return nil
}

// awaitTurn waits until w has its fate, or returns why it should be withdrawn: ctx or the Conn has ended;
// or w does not wait for another session, l is lost, and no session takes its place.
func (s *sender) awaitTurn(ctx context.Context, w outbox.Waiting, l *link.Link) error {
	for {
		var lost, changed <-chan struct{}
		switch {
		case !w.FailFast():
		case l != nil && !l.Lost():
			lost = l.Done()
		default:
			changed = s.life.Changed.Wait()
			switch next, phase := s.linkFor(0); {
			case next != nil:
				l = next
				continue
			case phase == phaseNone && l == nil:
				return s.state.refusal()
			case phase == phaseNone:
				return outbox.AsLoss(w.Session(), l.Cause(ErrNotReady))
			}
		}
		select {
		case <-w.Done():
			return nil
		case <-lost:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.life.Done():
			return net.ErrClosed
		}
	}
}

// sendWait is SendWait.
func (s *sender) sendWait(ctx context.Context, o Outgoing) error {
	var room, progress <-chan struct{} // nil: not asked for, because that allocates
	q := s.queue()
	for {
		err := context.Cause(ctx)
		if err == nil {
			if err = q.Accept((*outbox.Outgoing)(&o)); err == nil {
				return nil
			}
		}
		if !errors.Is(err, ErrOutboxFull) || len(o.Data) > s.life.o.Outbox.Bytes {
			return s.unwritten(FateDropped, 0, err)
		}
		if s.inReceipt(ctx) {
			err = fmt.Errorf("%w: SendWait does not wait in OnReceipt: send in another goroutine", err)
			return s.unwritten(FateDropped, 0, err)
		}
		if room == nil {
			room, progress = q.Progress()
			continue // because there may be room by now
		}
		select {
		case <-room:
		case <-progress:
		case <-s.life.Done():
		case <-ctx.Done():
		}
		room, progress = nil, nil
	}
}
