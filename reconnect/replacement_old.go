package reconnect

import (
	"net"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// The supervisor of the session that is replaced calls these methods of a replacement.

// loseOld notes that the old session is lost because of err; unread says that nobody read it when
// we ended it. It reports whether the successor leads already, so that the two sessions have
// overlapped.
func (r *replacement) loseOld(err error, unread bool) (overlapped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == phaseLed {
		r.short = r.short || unread
		switch r.old.reason(err) {
		case backoff.ReasonRotated:
		case backoff.ReasonHangup,
			backoff.ReasonCloseNormal, backoff.ReasonCloseRestart, backoff.ReasonCloseOverload, backoff.ReasonCloseOther:
			r.short = r.short || r.behind
		default:
			r.short = true // because what was on its way is lost
		}
		return true
	}
	if !r.breaks {
		r.lost, r.lostAt = err, time.Now()
	}
	return false
}

// runs reports whether the successor's supervisor has begun, so that the next session is its.
// The old session is lost.
func (r *replacement) runs() bool {
	if r == nil || r.breaks {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase != phaseDue
}

// led reports whether the successor's session was ready before the old one was lost.
func (r *replacement) led() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase == phaseLed && r.lost == nil
}

// mark says in the seam after the old session what the two sessions have in common.
func (r *replacement) mark(s *Seam) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Overlapped, s.Resumed = !r.short, r.resumed
}

// giveSeam notes that the reader has the seam after the old session. It returns the link whose mark
// may come now, or nil.
func (r *replacement) giveSeam() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.marks
	r.given, r.marks = true, nil
	return l
}

// seamGiven reports whether the reader has the seam after the old session. If not, giveSeam returns
// l, the successor's link.
func (r *replacement) seamGiven(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.given {
		r.marks = l
	}
	return r.given
}

// release gives the reader what was held. Nothing is held from then on. If the inbox has no
// room, that ends the successor's session, and the reader gets no more of it.
func (r *replacement) release() {
	if r.breaks {
		return
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.holds() { // OnMessage has ended the goroutine
			close(r.drained)
		}
	}()
	for refused := false; ; {
		r.mu.Lock()
		held := r.held.take()
		if r.releasing = true; len(held) == 0 {
			close(r.drained)
		}
		r.mu.Unlock()
		if len(held) == 0 {
			return
		}
		l := r.after.link.Load() // which has brought them
		for _, m := range held {
			if refused || r.life.closed.Load() {
				break
			}
			if err := r.receiver.give(l, m); err != nil {
				refused = true
				l.cut(err)
			}
		}
	}
}

// inherit is called when the old session has ended, with a verdict on why. It reports whether
// the successor leads from now on, because its dial becomes the redial. If the successor is idle
// there is no such dial, and its wait may be long, because the server may have refused it only
// for the sake of the old session. Then the replacement ends, and the keeper redials as after
// any loss.
func (r *replacement) inherit(v backoff.Verdict) bool {
	r.mu.Lock()
	due := r.phase == phaseDue
	idle := r.phase == phaseDialing && r.idle
	failed := r.phase == phaseGivenUp
	switch {
	case due, idle:
		r.phase = phaseGivenUp
	case r.phase == phaseDialing && !r.breaks && v.Class != backoff.ClassStop:
		r.phase = phaseLed
		r.state.inherit(&r.after, r.lost)
	}
	leads := r.phase == phaseLed
	r.mu.Unlock()
	switch {
	case due:
		r.stop()
		r.vacate()
	case idle:
		r.cancel()
		<-r.failed
	case failed:
		<-r.failed // else r would be there still when the keeper has its next session
	}
	return leads
}

// concludeOld is called when the old supervisor has ended. It reports whether the keeper leads,
// and then the successor's supervisor has ended.
func (r *replacement) concludeOld() bool {
	r.stop()
	r.mu.Lock()
	leads, begun, lost := r.phase != phaseLed, !r.began.IsZero(), r.lost
	if leads {
		r.phase = phaseGivenUp
	}
	r.mu.Unlock()
	switch {
	case !leads:
		r.over(lost)
		r.mu.Lock()
		r.old = nil    // because the successor may live as long as the Conn
		if r.holds() { // a callback has ended the goroutine before release
			close(r.drained)
		}
		r.mu.Unlock()
		r.keeper.Swap(nil).link.Store(nil) // else each replacement would keep the one before in memory
		close(r.gone)
	case begun && r.breaks:
		r.endBridge()
		r.over(net.ErrClosed)
	case begun:
		r.cancel()
		<-r.failed
	default:
		r.vacate()
	}
	return leads
}

// bridged is called when the next session of a keeper that has closed the old one first is
// ready, or was not, because of err.
func (r *replacement) bridged(err error) {
	r.stop()
	r.lower()
	if err != nil {
		r.sender.outbox().strand(r.old, true, r.cause)
	}
	r.over(err)
}

// lower says that messages need not wait any more for the session that takes the place of one
// that was closed first.
func (r *replacement) lower() {
	r.life.bridging.Store(false)
	r.state.changed.Broadcast()
}

// endBridge is the timer's callback: messages have waited long enough.
func (r *replacement) endBridge() {
	r.lower()
	r.sender.outbox().strand(r.old, false, r.cause)
}

// stop stops the timers.
func (r *replacement) stop() {
	r.start.Stop()
	r.drain.Stop()
	r.start.Wait()
	r.drain.Wait()
}

// over says that the replacement has ended, because of err if it has failed.
func (r *replacement) over(err error) {
	if err != nil {
		r.life.counts.rotationsFailed.Add(1)
	} else {
		r.life.counts.rotations.Add(1)
	}
	r.state.rotated(r)
	r.hook("Trace.RotateDone", func() {
		call(r.life.trace().RotateDone, RotateDone{Name: r.life.o.Name, Session: r.session, Took: time.Since(r.began), Err: err})
	})
	r.vacate()
}
