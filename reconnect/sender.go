package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redial-go/redial/conn"
)

// sender is the writing half of a [Conn].
type sender struct {
	life   *lifetime
	state  *state
	link   atomic.Pointer[link] // by which to write; nil: none is ready; written by the supervisor
	outbox *outbox              // nil where nothing is ever queued: no OnReceipt, and WhenDown is WhenDownFail
}

// ready returns the link by which to write, or nil if there is none.
func (s *sender) ready() *link {
	l := s.link.Load()
	if l == nil || l.lost() {
		return nil
	}
	return l
}

// attach lets messages be written by l.
func (s *sender) attach(l *link) {
	s.link.Store(l)
	s.outbox.attach(l)
}

// detach ends the writing by l, which was cut because of cause.
func (s *sender) detach(l *link, cause error) {
	s.link.CompareAndSwap(l, nil)
	s.outbox.detach(l, cause)
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
		err = l.conn.Write(m)
		l.slot.Release()
		if err == nil {
			s.life.counts.written(m)
			return nil
		}
		if errors.Is(err, conn.ErrBadMessage) {
			return s.unwritten(FateDropped, 0, err)
		}
		begun := !errors.Is(err, conn.ErrNotWritten)
		l.cut(err)
		switch {
		case begun:
			return s.unwritten(FateUnknown, l.session, asLoss(l.why(err)))
		case s.life.o.WhenDown == WhenDownFail:
			return s.unwritten(FateDropped, l.session, asLoss(l.why(err)))
		}
	}
}

func (s *sender) unwritten(fate Fate, session uint64, err error) error {
	s.life.counts.settled(fate)
	return &WriteError{Fate: fate, Session: session, Err: err}
}

// acquire returns the ready link and holds its slot, so that the caller may write; or it
// returns nil, if the message has to queue.
func (s *sender) acquire(ctx context.Context, session uint64) (*link, error) {
	for {
		l := s.ready()
		switch {
		case s.life.leaving.Load() || s.life.closed.Load():
			return nil, net.ErrClosed
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case session != 0 && (session != s.life.counts.sessions.Load() || l != nil && session != l.session):
			return nil, sessionLost(session)
		case l == nil && s.life.o.WhenDown == WhenDownFail:
			return nil, s.state.refusal()
		case l == nil || s.outbox.busy():
			return nil, nil
		case s.outbox == nil:
			if err := l.slot.Acquire(ctx, &s.life.Context); err != nil {
				return nil, err
			}
		case !l.slot.TryAcquire():
			return nil, nil // because in the queue no other message overtakes it
		}
		if s.ready() == l && !s.life.leaving.Load() {
			return l, nil
		}
		l.slot.Release()
	}
}

// sessionLost returns the error of a message for a session that has ended, or that has never
// been.
func sessionLost(session uint64) error {
	return fmt.Errorf("session %d: %w", session, ErrSessionLost)
}

// writeInTurn queues m and waits for its fate.
func (s *sender) writeInTurn(ctx context.Context, session uint64, m conn.Message) error {
	e, l, err := s.outbox.join(m, session)
	if err != nil {
		return s.unwritten(FateDropped, 0, err)
	}
	if why := s.awaitTurn(ctx, e, l); why != nil && s.outbox.withdraw(e) {
		return s.unwritten(FateDropped, e.Value.session, why)
	}
	<-e.Value.done
	if m := &e.Value; m.fate != FateWritten {
		return &WriteError{Fate: m.fate, Session: m.session, Err: m.err}
	}
	return nil
}

// awaitTurn waits until e has its fate, or returns why it should be withdrawn. A message
// that does not wait for another session than that of l is withdrawn when l is lost,
// because the supervisor may be busy.
func (s *sender) awaitTurn(ctx context.Context, e *entry, l *link) error {
	var lost <-chan struct{}
	if e.Value.failFast {
		lost = l.Done()
	}
	select {
	case <-e.Value.done:
		return nil
	case <-lost:
		return asLoss(l.why(ErrNotReady))
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return net.ErrClosed
	}
}

// send is Send.
func (s *sender) send(o Out) error {
	if s.outbox == nil || s.life.o.Outbox.OnReceipt == nil {
		return errNoOnReceipt
	}
	if err := s.outbox.accept(o); err != nil {
		return s.unwritten(FateDropped, 0, err)
	}
	return nil
}

// sendWait is SendWait.
func (s *sender) sendWait(ctx context.Context, o Out) error {
	if s.outbox == nil || s.life.o.Outbox.OnReceipt == nil {
		return errNoOnReceipt
	}
	for {
		room, progress := s.outbox.room.Wait(), s.outbox.reporter.progress.Wait()
		err := context.Cause(ctx)
		if err == nil {
			if err = s.outbox.accept(o); err == nil {
				return nil
			}
		}
		if !errors.Is(err, ErrOutboxFull) || len(o.Data) > s.life.o.Outbox.Bytes {
			return s.unwritten(FateDropped, 0, err)
		}
		select {
		case <-room:
		case <-progress:
		case <-s.life.Done():
		case <-ctx.Done():
		}
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
