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
		b.expired = append(b.expired, r)
		if len(b.expired) > maxExpired {
			b.expired[0] = nil
			b.expired = b.expired[1:]
		}
		for _, e := range b.unanswered(r) {
			b.silence(r.Op, e)
		}
	}
}

// maxExpired is how many requests of a session are remembered whose answers may still come, and
// how many ids that Encode has made.
const maxExpired = 64

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
	if judge {
		b.rejections = append(b.rejections, rejection[K]{e, op, ErrNoAnswer})
	}
}

// needless reports whether nobody needs any more what was asked for, so that a failure matters
// to nobody.
func (b *book[K]) needless(op Op, e *entry[K]) bool {
	return e.wanted() != (op == Subscribe) || op == Subscribe && b.retiring
}

// asks is how often a key is asked for without an answer until OnReject decides.
const asks = 2

// late works off the answer to a request that was given up or answered before, and reports
// whether there was one. It confirms nothing. But if the venue has done after all what our
// book says is not so, the key is uncertain.
func (b *book[K]) late(a *Answer[K]) bool {
	for _, r := range b.expired {
		if r.ID != a.ID {
			continue
		}
		for _, e := range r.entries { // which may have been forgotten, and made anew
			if a.agrees(e.key) {
				b.doubt(b.set.entry(e.key), r.Op)
			}
		}
		b.kick()
		return true
	}
	return slices.Contains(b.recent, a.ID)
}

// doubt notes that the venue has done something that was asked for long ago, or not at all. If
// a request for the contrary is on its way nobody knows which of the two came first.
func (b *book[K]) doubt(e *entry[K], op Op) {
	b.set.uncount(e)
	switch p := &e.at[b.slot]; {
	case p.request != nil && p.request.Op != op:
		p.in |= inDoubt
	case p.request != nil:
	case op == Subscribe && p.venue == venueNo, op == Unsubscribe && p.venue == venueYes:
		p.venue = venueMaybe
	}
	b.set.recount(e)
}

// remember keeps the id of a request that was answered, if the Set did not make it, so that a
// second answer is known as ours.
func (b *book[K]) remember(r *request[K]) {
	if b.set.gave(r.ID) {
		return
	}
	if b.recent = append(b.recent, r.ID); len(b.recent) > maxExpired {
		b.recent = b.recent[1:]
	}
}
