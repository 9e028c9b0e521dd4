package subscription

import (
	"slices"
	"time"
)

// expire gives up the requests whose answers have not come in time.
func (b *book[K]) expire(now time.Time) {
	for _, r := range slices.Clone(b.inflight) {
		if r.state != phaseWritten || r.deadline.IsZero() || now.Before(r.deadline) {
			continue
		}
		b.set.stats.Unanswered++
		b.forget(r)
		if b.late = append(b.late, r); len(b.late) > maxLate {
			b.late[0] = nil
			b.late = b.late[1:]
		}
		for _, e := range b.unanswered(r) {
			b.silence(r.Op, e)
		}
	}
}

// maxLate is how many requests of a session are remembered whose answers may still come.
const maxLate = 64

// silence notes that a request for e was not answered.
func (b *book[K]) silence(op Op, e *entry[K]) {
	judge := false
	b.settle(e, func(p *place[K]) {
		p.in, p.venue = p.in&^inDoubt, venueMaybe
		if b.needless(op, e) {
			return
		}
		t := e.mind()
		if t.silent++; t.silent >= asks {
			t.silent, t.judging, judge = 0, true, true
		}
	})
	if !judge {
		return
	}
	err := ErrNoAnswer
	if b.nameless {
		err = errNameless
	}
	b.rejections = append(b.rejections, rejection[K]{e, op, err})
}

// needless reports whether a request for e is of no use any more, so that its failure does not
// matter.
func (b *book[K]) needless(op Op, e *entry[K]) bool {
	return e.wanted() != (op == OpSubscribe) || op == OpSubscribe && b.retiring
}

// asks is how often a key is asked for without an answer until OnReject decides.
const asks = 2

// tooLate works off an answer to a request that was given up, and reports whether there was one.
// The answer confirms nothing. But a venue that works off requests beside each other, as Action
// Cable does, may have done an old request after a newer one: then the key is uncertain.
func (b *book[K]) tooLate(a *Answer[K]) (known bool) {
	for _, r := range b.late {
		if !a.names(r.ID, r.Op) {
			continue
		}
		known = true
		for _, k := range r.Keys {
			if a.agrees(k) {
				b.doubt(b.set.entry(k), r.Op) // the entry may have been forgotten, and made anew
			}
		}
	}
	b.kick()
	return known
}

// doubt notes that the venue has done an old request for e. If that contradicts the state of e, or a
// request on its way, which may have been done before, e is asked for, or removed, again.
func (b *book[K]) doubt(e *entry[K], op Op) {
	b.set.uncount(e)
	switch p := &e.at[b.slot]; {
	case p.request != nil && p.request.Op != op:
		p.in |= inDoubt
	case p.request != nil:
	case op == OpSubscribe && p.venue == venueNo, op == OpUnsubscribe && p.venue == venueYes:
		p.venue = venueMaybe
	}
	b.set.recount(e)
}
