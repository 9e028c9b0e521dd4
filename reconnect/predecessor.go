package reconnect

import (
	"net"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/handover"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// predecessor is the side of the supervisor whose session is replaced. With OverlapBreakFirst it also makes
// the next session.
type predecessor struct {
	alone
	*replacement
}

func (r predecessor) breaks() bool { return r.c.life.o.Rotate.Overlap == OverlapBreakFirst }

func (r predecessor) describe(*Session) {}
func (r predecessor) failed(err error)  { r.bridged(err) }

func (r predecessor) opening(o *Opening) {
	r.tell(func(m *handover.Tapped) { o.Planned = r.breaks() && m.Planned() })
}

// ready ends a rotation that has closed the session first.
func (r predecessor) ready(l *served) (marks bool, err error) {
	marks, err = r.alone.ready(l)
	outer := l.calls.Enter(&watch.Elsewhere)
	r.bridged(nil)
	l.calls.Leave(outer)
	return marks, err
}

// bridged ends a rotation that has closed the session first: a session of the supervisor is ready, or could
// not be made because of err.
func (r predecessor) bridged(err error) {
	ends := false
	r.tell(func(m *handover.Tapped) { ends = m.Bridged() })
	if !ends {
		return
	}
	defer r.report(err) // even if Keep ends the goroutine
	r.stop()
	r.lower()
	if err != nil {
		r.c.sender.outbox().Strand(&r.old.Link, r.cause, r.old.keeps(&r.c.life, r.cause))
	}
}

// lower says that messages need not wait any more for the session after OverlapBreakFirst.
func (r *replacement) lower() {
	r.c.life.Bridging.Store(false)
	r.c.life.Changed.Broadcast()
}

// endBridge is the timer's callback: messages have waited long enough.
func (r *replacement) endBridge() {
	r.lower()
	r.c.sender.outbox().Strand(&r.old.Link, r.cause, nil)
}

func (r predecessor) lost(l *served, why loss) (overlapped, dials bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how := handover.EndedBroken
	switch why.reason {
	case backoff.ReasonRotated:
		if how = handover.EndedByUs; l.Crossed() {
			how = handover.EndedByPeer // perhaps
		}
	case backoff.ReasonHangup,
		backoff.ReasonCloseNormal, backoff.ReasonCloseRestart, backoff.ReasonCloseOverload, backoff.ReasonCloseOther:
		how = handover.EndedByPeer
	}
	if overlapped = r.machine.OldLost(how, why.unread); !overlapped {
		r.replacement.lost = &cut{why.err, time.Now()}
	}
	return overlapped, !r.breaks() && r.machine.Begun()
}

func (r predecessor) mark(s *Seam) {
	r.tell(func(m *handover.Tapped) { s.Overlapped, s.Resumed = m.Overlapped(), m.Resumed() })
}

// marks notes that the reader has the seam of the old session.
func (r predecessor) marks() *served {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.waits
	r.seamed, r.waits = true, nil
	return l
}

// release gives the reader the held messages. If the inbox has no room, the successor's session ends, and
// the rest is dropped.
func (r predecessor) release() {
	if r.breaks() {
		return
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.machine.Released() { // OnMessage has ended the goroutine
			r.machine.Release(0)
			r.endRelease()
		}
	}()
	for refused := false; ; {
		r.mu.Lock()
		held := r.held.Take()
		if r.machine.Release(len(held)) {
			r.endRelease()
		}
		r.mu.Unlock()
		if len(held) == 0 {
			return
		}
		l := r.next.seat.link.Load() // which has brought them
		r.k.calls.Follow(&l.Link)
		for _, m := range held {
			if refused || r.c.life.Closed.Load() {
				break
			}
			if err := r.c.receiver.putAnyway(l, &r.k.calls, Message(m)); err != nil {
				refused = true
				l.Cut(err)
			}
		}
	}
}

func (r predecessor) inherits(v backoff.Verdict) bool {
	r.mu.Lock()
	heir := r.machine.OldEnded(v.Class == backoff.ClassStop)
	if heir == handover.HeirNextLeads {
		r.next.origin.before.Store(r.replacement.lost)
		r.c.state.inherit(&r.next.seat, r.replacement.lost.err, unlessLenient(v))
	}
	begun := r.machine.Begun()
	r.mu.Unlock()
	switch {
	case !begun:
		r.stop()
		r.vacate()
	case heir == handover.HeirOldAlone:
		r.next.origin.cancel()
		<-r.givenUp
	}
	return heir == handover.HeirNext || heir == handover.HeirNextLeads
}

func (r predecessor) done(error) bool {
	r.stop()
	var done handover.OldDone
	r.tell(func(m *handover.Tapped) { done = m.OldDone() })
	switch done {
	case handover.OldReplaced:
		var err error
		if r.replacement.lost != nil {
			err = r.replacement.lost.err
		}
		r.report(err)
		r.mu.Lock()
		r.old = nil // because the successor may need r for as long as its session
		r.endRelease()
		r.mu.Unlock()
		r.seat.link.Store(nil)
		r.k.calls.Follow(nil)
		r.k.calls.Stop()
		r.k.awaitOld()
		r.seat = nil // else each rotation would keep the one before in memory
		close(r.gone)
		return false
	case handover.OldBroke:
		r.login()
		r.endBridge()
		r.report(net.ErrClosed)
	case handover.OldAwaits:
		r.next.origin.cancel()
		<-r.givenUp
	case handover.OldWasLast:
		r.vacate()
	}
	return true
}
