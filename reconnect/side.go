package reconnect

import (
	"context"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/handover"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// side is what a rotation means for a supervisor, which asks at each step of a session: alone,
// predecessor (of the session that is replaced) or successor (which makes the next session).
type side interface {
	describe(s *Session)                               // says why there is a new session, unless the Session knows
	opening(o *Opening)                                // says what the session replaces, and where its messages go
	receive(ctx context.Context, l *served) error      // reads l until the reader has all of the session before
	lost(l *served, why loss) (overlapped, dials bool) // whether another supervisor leads by now, and whether it dials at least
	failed(err error)                                  // a dial or a session has failed before it was ready
	mark(s *Seam)                                      // says in the seam what the two sessions have in common
	afterSeam(l *served)                               // gives the reader what waited for the seam of l
	inherits(v backoff.Verdict) bool                   // whether another supervisor goes on after a session that ended with v
	done(err error) bool                               // whether the Conn ends with the supervisor, which has ended because of err

	// lead publishes that l is ready, and reports whether its mark may come. It returns errReplaced if there is no
	// use for l.
	lead(l *served) (marks bool, err error)

	// rests notes whether the supervisor waits before its dial, and the server has not asked for that. It returns
	// the number of the session that the dial is to replace, or 0.
	rests(resting bool) (replaces uint64)
}

// loss is how a session ended.
type loss struct {
	err    error
	reason backoff.Reason
	ready  bool // the session was ready
	unread bool // we ended it while nobody read it
}

// alone is the side of a supervisor that has no part in a rotation: there is none, or the rotation
// that has begun the supervisor is over.
type alone struct{ k *keeper }

func (alone) opening(*Opening)                            {}
func (alone) receive(context.Context, *served) error      { return nil }
func (alone) lost(*served, loss) (overlapped, dials bool) { return false, false }
func (alone) failed(error)                                {}
func (alone) mark(*Seam)                                  {}
func (alone) afterSeam(*served)                           {}
func (alone) inherits(backoff.Verdict) bool               { return false }
func (alone) rests(bool) (replaces uint64)                { return 0 }
func (alone) done(error) bool                             { return true }

func (a alone) describe(s *Session) {
	if a.k.origin == nil {
		return
	}
	if before := a.k.origin.before.Load(); before != nil {
		s.Downtime = time.Since(before.at)
		if s.Cause == nil {
			s.Cause = before.err
		}
	}
}

func (a alone) lead(l *served) (marks bool, err error) {
	a.k.c.sender.attach(&l.Link)
	a.k.c.state.setReady(&a.k.seat, l)
	return true, nil
}

// side returns what a rotation means for k now. It changes when a rotation begins or ends, so
// that a step of the supervisor asks once.
func (k *keeper) side() side {
	if k.origin != nil {
		if r := k.origin.follows.Load(); r != nil {
			return successor{replacement: r}
		}
	}
	k.c.state.mu.Lock() // because a session that is lost gets no replacement after that: see enlist
	defer k.c.state.mu.Unlock()
	if r := k.c.replacement.Load(); r != nil && r.seat == &k.seat {
		return predecessor{alone{k}, r}
	}
	return alone{k}
}

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
	r.mu.Lock()
	defer r.mu.Unlock()
	o.Planned = r.breaks() && r.machine.Planned()
}

// lead ends a rotation that has closed the session first.
func (r predecessor) lead(l *served) (marks bool, err error) {
	marks, err = r.alone.lead(l)
	outer := l.calls.Enter(&watch.Elsewhere)
	r.bridged(nil)
	l.calls.Leave(outer)
	return marks, err
}

// bridged ends a rotation that has closed the session first: a session of the supervisor is ready, or could
// not be made because of err.
func (r predecessor) bridged(err error) {
	r.mu.Lock()
	ends := r.machine.Bridged()
	r.unlock()
	if !ends {
		return
	}
	defer r.report(err) // even if Keep ends the goroutine
	r.stop()
	r.lower()
	if err != nil {
		r.c.sender.outbox.Load().Strand(&r.old.Link, r.cause, r.old.keeps(&r.c.life, r.cause))
	}
}

func (r predecessor) lost(l *served, why loss) (overlapped, dials bool) {
	r.mu.Lock()
	defer r.unlock()
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
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Overlapped, s.Resumed = r.machine.Overlapped(), r.machine.Resumed()
}

// afterSeam gives the reader the mark of the successor's session, if that waits for the seam of old, and the held
// messages. If the inbox has no room, the successor's session ends, and the rest is dropped.
func (r predecessor) afterSeam(old *served) {
	r.mu.Lock()
	next := r.waits
	r.seamed, r.waits = true, nil
	r.mu.Unlock()
	r.c.receiver.mark(next, old)
	if r.breaks() {
		return
	}
	defer func() {
		r.mu.Lock()
		defer r.unlock()
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
		r.unlock()
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
	r.unlock()
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
	r.mu.Lock()
	done := r.machine.OldDone()
	r.unlock()
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
	r.mu.Lock()
	o.Planned = r.machine.Planned()
	r.mu.Unlock()
	if r.reads() {
		o.replaces = r
	}
}

func (r successor) rests(resting bool) (replaces uint64) {
	r.mu.Lock()
	defer r.unlock()
	r.machine.Rest(resting)
	if r.machine.Planned() {
		replaces = r.session
	}
	return replaces
}

// lead lets the successor lead, if it does not yet.
func (r successor) lead(l *served) (marks bool, err error) {
	r.mu.Lock()
	old := r.old
	r.mu.Unlock()
	ended := old != nil && old.MayHaveEnded()

	r.mu.Lock()
	defer r.unlock()
	// A session that is lost may wait for a hook, and its supervisor says OldLost after that.
	behind := r.old != nil && (ended || r.old.Lost() || r.old.Behind())
	switch r.machine.NextReady(l.resumed, behind) {
	case handover.LeadRefused:
		return false, errReplaced
	case handover.LeadKeeps:
		r.c.sender.attach(&l.Link)
		r.c.state.setReady(&r.next.seat, l)
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

// cutOld ends the old session immediately, because no more can be held.
func (r successor) cutOld() {
	r.mu.Lock()
	old := r.old
	cut := r.machine.HeldFull()
	r.unlock()
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
	r.unlock()
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
	r.unlock()
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
