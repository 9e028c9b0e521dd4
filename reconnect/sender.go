package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/conn"
)

// sender is the writing half of a [Conn].
type sender struct {
	life  *lifetime
	state *state
	link  atomic.Pointer[link] // by which to write; nil: none is ready; written under mu
	old   atomic.Pointer[link] // the link that it replaces, for messages of that session; nil: none; likewise

	box  atomic.Pointer[outbox] // nil until a message queues, because most connections only receive
	last uint64                 // the last session that was lost; guarded by mu
	mu   sync.Mutex             // held while box is made, and while link changes; never while waiting
}

// outbox returns the outbox, or nil if no message has been queued yet.
func (s *sender) outbox() *outbox { return s.box.Load() }

// queue returns the outbox, which the first call makes.
func (s *sender) queue() *outbox {
	if q := s.box.Load(); q != nil {
		return q
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.box.Load(); q != nil {
		return q
	}
	q := newOutbox(s.life, s.state)
	q.link, q.old, q.last, q.closed = s.link.Load(), s.old.Load(), s.last, s.state.now().State == StateClosed
	s.box.Store(q)
	return q
}

// queues reports whether messages may queue: those of Send, or of a Write that waits for a
// session.
func (s *sender) queues() bool {
	return s.life.o.Outbox.OnReceipt != nil || s.life.o.WhenDown != WhenDownFail
}

// ready returns the link by which to write, or nil if there is none.
func (s *sender) ready() *link {
	l := s.link.Load()
	if l == nil || l.lost() {
		return nil
	}
	return l
}

// by returns the link by which a message for a session may be written, nil if there is none.
// Session 0 is any.
func (s *sender) by(session uint64) *link {
	l := s.ready()
	if session == 0 || l == nil || l.session == session {
		return l
	}
	if old := s.old.Load(); old != nil && old.session == session && !old.lost() {
		return old
	}
	return nil
}

// attach lets messages be written by l: those of Write and those of Send from the same moment
// on, because otherwise a Send could go by the session before after a Write has gone by l.
func (s *sender) attach(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.outbox()
	if q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
	}
	if was := s.link.Load(); was != nil && !was.lost() {
		s.old.Store(was) // first, so that by finds it all the time
	}
	s.link.Store(l)
	q.attach(l)
}

// detach ends the writing by l, which was cut because of cause.
func (s *sender) detach(l *link, cause error) {
	s.mu.Lock()
	s.link.CompareAndSwap(l, nil)
	s.old.CompareAndSwap(l, nil)
	s.last = max(s.last, l.session)
	q := s.outbox()
	s.mu.Unlock()
	q.detach(l, cause)
}

// end ends the outbox for good. The state is StateClosed.
func (s *sender) end() {
	s.mu.Lock() // because the outbox may be in the making
	q := s.outbox()
	s.mu.Unlock()
	q.end()
}

// Write sends m by the ready session. Nil means that it was written: the whole message was
// handed to the kernel. Any other outcome is a *[WriteError] with the fate of m: it was
// dropped, so that not a byte was sent, or its fate is unknown, because the connection died
// while m was being written. Write never sends m twice. The data of m belongs to the caller
// again when Write returns.
//
// While no session is ready Write fails, with [ErrNotReady], or waits, as Options.WhenDown
// says. If [Conn.Send] has queued messages, Write waits behind them, and it waits for other
// writes. The end of ctx ends these waits; if ctx has ended before, nothing is written. It
// does not end a write under way, which the connection's own write timeout bounds. While a
// callback runs in the supervisor's goroutine no session can come for which Write could
// wait, so pass it the callback's context there.
func (c *Conn) Write(ctx context.Context, m conn.Message) error { return c.sender.write(ctx, 0, m) }

// WriteTo is Write by one session and no other, such as that of the message which m
// answers ([Message.Session]). If that session has ended, or there was none with that
// number, m is dropped, with [ErrSessionLost]. Session 0 is any session, as for Write.
func (c *Conn) WriteTo(ctx context.Context, session uint64, m conn.Message) error {
	return c.sender.write(ctx, session, m)
}

// AwaitSession returns the number of the session by which Write would send now, for a program
// that must know it before it sends, such as one that matches answers to questions: pass it to
// [Conn.WriteTo]. While no session is ready it fails, with [ErrNotReady], or waits, as
// Options.WhenDown says of Write. Its other errors are the end of the Conn, as [Conn.Err] returns
// it, from when Close or Shutdown is called, and the cause of ctx. If both have ended it is that of
// the Conn. What Write says of callbacks holds here too.
func (c *Conn) AwaitSession(ctx context.Context) (session uint64, err error) {
	return c.sender.awaitSession(ctx)
}

// awaitSession is AwaitSession. It makes the channel for the wait only if it has to wait.
func (s *sender) awaitSession(ctx context.Context) (uint64, error) {
	var changed <-chan struct{}
	for {
		bridged := s.life.bridging.Load()
		l := s.ready()
		switch {
		case s.life.leaving.Load() || s.life.closed.Load():
			return 0, net.ErrClosed
		case l != nil && ctx.Err() == nil:
			return l.session, nil
		}
		switch status := s.state.now(); {
		case status.State == StateClosed:
			return 0, status.Err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case s.life.o.WhenDown == WhenDownFail && !s.bridges(bridged):
			return 0, s.state.refusal()
		case changed == nil: // look once more, now that no change can be missed
			changed = s.state.changed.Wait()
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.life.Done():
		}
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
		if n, err := l.mayWrite(ctx, s.life, 1, s.life.leaving.Load); n == 0 {
			l.slot.Release()
			if err == nil || l.lost() && ctx.Err() == nil && s.mayWait() {
				continue
			}
			if ctx.Err() == nil {
				err = asLoss(err)
			}
			return s.unwritten(FateDropped, 0, err)
		}
		err = l.conn.Write(m)
		l.wrote(1)
		l.slot.Release()
		if err == nil {
			s.life.counts.written(m)
			return nil
		}
		if errors.Is(err, conn.ErrBadMessage) {
			return s.unwritten(FateDropped, 0, err)
		}
		begun := !errors.Is(err, conn.ErrNotWritten)
		l.fail(err)
		switch {
		case begun:
			return s.unwritten(FateUnknown, l.session, asLoss(l.why(err)))
		case !s.mayWait():
			return s.unwritten(FateDropped, l.session, asLoss(l.why(err)))
		}
	}
}

// mayWait reports whether a Write whose session was lost before it began tries another one:
// because WhenDown says so, or because that session was replaced.
func (s *sender) mayWait() bool {
	return s.life.o.WhenDown != WhenDownFail || s.life.bridging.Load() || s.ready() != nil
}

func (s *sender) unwritten(fate Fate, session uint64, err error) error {
	s.life.counts.settled(fate)
	return &WriteError{Fate: fate, Session: session, Err: err}
}

// bridges reports whether a message waits though no session is ready. before is life.bridging
// from before the caller looked for a session: that goes up before the old session ends, and down
// when the next one is there, so both times count.
func (s *sender) bridges(before bool) bool { return before || s.life.bridging.Load() }

// awaitBridge waits until something changes, while a session was closed so that another can
// take its place.
func (s *sender) awaitBridge(ctx context.Context) error {
	changed := s.state.changed.Wait()
	if !s.life.bridging.Load() {
		return nil
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return net.ErrClosed
	}
}

// acquire returns the ready link and holds its slot, so that the caller may write; or it
// returns nil, if the message has to queue.
func (s *sender) acquire(ctx context.Context, session uint64) (*link, error) {
	for {
		bridged := s.life.bridging.Load()
		l := s.by(session)
		switch {
		case s.life.leaving.Load() || s.life.closed.Load():
			return nil, net.ErrClosed
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case l == nil && session != 0 && s.ended(session):
			return nil, sessionLost(session)
		case l == nil && session != 0 && s.life.o.WhenDown == WhenDownFail && s.ready() != nil:
			return nil, fmt.Errorf("session %d: %w", session, ErrNotReady)
		case l == nil && s.life.o.WhenDown == WhenDownFail && s.bridges(bridged):
			if err := s.awaitBridge(ctx); err != nil {
				return nil, err
			}
			continue
		case l == nil && s.life.o.WhenDown == WhenDownFail:
			return nil, s.state.refusal()
		case l == nil || s.outbox().busy():
			return nil, nil
		case !s.queues():
			if err := l.slot.Acquire(ctx, &s.life.Context); err != nil {
				return nil, err
			}
		case !l.slot.TryAcquire():
			return nil, nil // because in the queue no other message overtakes it
		}
		if s.by(session) == l && !s.life.leaving.Load() {
			return l, nil
		}
		l.slot.Release()
	}
}

// ended reports whether a session that is not ready has ended, or has never been.
func (s *sender) ended(session uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session != s.life.counts.sessions.Load() || session <= s.last
}

// sessionLost returns the error of a message for a session that has ended, or that has never
// been.
func sessionLost(session uint64) error {
	return fmt.Errorf("session %d: %w", session, ErrSessionLost)
}

// writeInTurn queues m and waits for its fate.
func (s *sender) writeInTurn(ctx context.Context, session uint64, m conn.Message) error {
	q := s.queue()
	e, l, err := q.join(m, session)
	if err != nil {
		return s.unwritten(FateDropped, 0, err)
	}
	if why := s.awaitTurn(ctx, e, l); why != nil && q.withdraw(e) {
		return s.unwritten(FateDropped, e.Value.session, why)
	}
	<-e.Value.done
	if m := &e.Value; m.fate != FateWritten {
		return &WriteError{Fate: m.fate, Session: m.session, Err: m.err}
	}
	return nil
}

// awaitTurn waits until e has its fate, or returns why it should be withdrawn. A message that
// does not wait for another session is withdrawn when l is lost and no session takes its
// place, because the supervisor may be busy.
func (s *sender) awaitTurn(ctx context.Context, e *entry, l *link) error {
	for {
		var lost, bridged <-chan struct{}
		switch {
		case !e.Value.failFast:
		case l != nil && !l.lost():
			lost = l.Done()
		default:
			bridged = s.state.changed.Wait()
			before := s.life.bridging.Load()
			if next := s.ready(); next != nil {
				l = next
				continue
			}
			switch waits := s.bridges(before); {
			case !waits && l == nil:
				return s.state.refusal()
			case !waits:
				return asLoss(l.why(ErrNotReady))
			}
		}
		select {
		case <-e.Value.done:
			return nil
		case <-lost:
		case <-bridged:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.life.Done():
			return net.ErrClosed
		}
	}
}

// send is Send.
func (s *sender) send(o Out) error {
	if s.life.o.Outbox.OnReceipt == nil {
		return errNoOnReceipt
	}
	if err := s.queue().accept(o); err != nil {
		return s.unwritten(FateDropped, 0, err)
	}
	return nil
}

// sendWait is SendWait.
func (s *sender) sendWait(ctx context.Context, o Out) error {
	if s.life.o.Outbox.OnReceipt == nil {
		return errNoOnReceipt
	}
	var room, progress <-chan struct{} // nil: not asked for, because that allocates
	q := s.queue()
	for {
		err := context.Cause(ctx)
		if err == nil {
			if err = q.accept(o); err == nil {
				return nil
			}
		}
		if !errors.Is(err, ErrOutboxFull) || len(o.Data) > s.life.o.Outbox.Bytes {
			return s.unwritten(FateDropped, 0, err)
		}
		if room == nil {
			room, progress = q.room.Wait(), q.reporter.progress.Wait()
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

// asLoss returns the cause of a session's end as the error of a message. It hides a context
// that has ended, because that was not the message's.
func asLoss(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return because(ErrSessionLost, cause)
	}
	return cause
}

// because returns err with cause behind it.
func because(err, cause error) error {
	return &behind{error: err, text: err.Error() + ": " + cause.Error(), cause: cause}
}
