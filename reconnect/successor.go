package reconnect

import (
	"context"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/handover"
)

// successor is the side of the supervisor that makes the next session.
type successor struct {
	alone
	*replacement
}

func (r successor) describe(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := r.cause
	switch {
	case r.machine.Planned():
		s.Downtime = 0
	case r.machine.HasLed():
		return
	default:
		s.Downtime, cause = time.Since(r.replacement.lost.at), r.replacement.lost.err
	}
	if s.Cause == nil {
		s.Cause = cause
	}
}

func (r successor) opening(o *Opening) {
	r.tell(func(m *handover.Tapped) { o.Planned = m.Planned() })
	if r.reads() {
		o.replaces = r
	}
}

func (r successor) rests(resting bool) { r.tell(func(m *handover.Tapped) { m.Rest(resting) }) }

// ready lets the successor lead, if it does not yet.
func (r successor) ready(l *served) (marks bool, err error) {
	r.mu.Lock()
	old := r.old
	r.mu.Unlock()
	ended := old != nil && old.MayHaveEnded()

	r.mu.Lock()
	defer r.mu.Unlock()
	// A session that is lost may wait for a hook, and its supervisor says OldLost after that.
	behind := r.old != nil && (ended || r.old.Lost() || r.old.Behind())
	switch r.machine.NextReady(l.resumed, behind) {
	case handover.LeadRefused:
		return false, errReplaced
	case handover.LeadKeeps:
		r.c.sender.attach(&l.Link)
		r.c.state.ready(&r.next.seat, l)
	case handover.LeadTakes:
		r.c.state.succeed(&r.next.seat, l, func() { r.c.sender.attach(&l.Link) })
		r.drain.Set(r.c.life.o.Rotate.Drain, r.endDrain)
	}
	if !r.seamed {
		r.waits = l
	}
	return r.seamed, nil
}

// receive reads l until the reader has all of the old session.
func (r successor) receive(ctx context.Context, l *served) error {
	for !r.c.life.Closed.Load() {
		if !r.reads() {
			return nil
		}
		m, err := l.Conn.Read(nil)
		if err != nil {
			return l.EndedBy(err)
		}
		r.c.life.counts.in.Received(m)
		l.Heard()
		if err := r.put(ctx, l, m, noLayer); err != nil {
			return err
		}
	}
	return net.ErrClosed
}

// put gives a message of the next session to the layers but one, and then to the reader, or holds
// it until the reader has all of the old session. m belongs to r.
func (r successor) put(ctx context.Context, l *served, m conn.Message, but int) error {
	msg := Message{Message: m, Session: l.Session}
	taken := r.c.receiver.taken(l, msg, but)
	if l.Unpause(); taken {
		return nil
	}
	l.delivered = true
	switch held, full := r.hold(msg); {
	case full:
		r.cutOld()
		defer l.Resume()
		return l.block(ctx, r.released)
	case held:
		return nil
	case l.Ended(): // perhaps by release, because there was no room for what came before
		return l.Cause(net.ErrClosed)
	}
	return r.c.receiver.put(ctx, l, msg)
}

// cutOld ends the old session at once, because no more can be held.
func (r successor) cutOld() {
	r.mu.Lock()
	old := r.old
	cut := r.machine.HeldFull()
	r.mu.Unlock()
	if cut {
		old.Part(r.cause, backoff.ReasonRotated, -1)
	}
}

// lost lets the seam of the old session come before that of l. The messages that are held of a session
// that was never ready are dropped.
func (r successor) lost(l *served, why loss) (overlapped, dials bool) {
	r.mu.Lock()
	before := r.machine.NextLost(why.ready)
	if before == handover.LossForget && r.held.Forget(l.Session) {
		l.delivered = false
	}
	r.mu.Unlock()
	if before == handover.LossAwait {
		r.endDrain()
	}
	if before != handover.LossForget {
		<-r.released
	}
	return false, false
}

// done waits for the old supervisor if the successor leads.
func (r successor) done(err error) bool {
	r.mu.Lock()
	leads := r.machine.NextDone()
	if r.replacement.lost != nil {
		err = r.replacement.lost.err
	}
	r.mu.Unlock()
	if leads {
		r.endDrain()
		<-r.gone
		return true
	}
	r.report(err)
	r.next.calls.Stop()
	close(r.givenUp)
	return false
}
