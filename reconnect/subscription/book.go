package subscription

import (
	"container/heap"
	"context"
	"time"
)

// book has the keys of one session, and the work that the session has to do. The Set's mu guards the
// fields that change.
type book[K comparable] struct {
	set    *Set[K]
	number uint64 // of the session
	slot   int    // the place of each entry that belongs to this session
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // holds one wake-up for the worker

	ready    bool // it was ready
	retiring bool // a later session is ready
	ended    bool // it was lost, or nothing can be written by it any more
	working  bool // there is a worker

	adds     queue[K]      // to subscribe to
	drops    []*entry[K]   // to unsubscribe from, in order
	jobs     []job[K]      // come before both
	inflight []*request[K] // in the order in which they were made
	late     []*request[K] // were not answered in time, the oldest first
	nameless bool          // an answer with neither ID nor keys came, although InFlight is more than 1

	rejections []rejection[K] // on which OnReject is to decide
	failure    error          // for which the session is to be ended; nil: none
	hold       time.Time      // nothing is written before
	spared     int            // how many requests in a row were cancelled unsent
	drain      bool           // in Open: the answers are to be read before the next request is made

	open    int // entries for which something is to be done, or is on its way
	owed    int // of these, those that are wanted, and were there when the session began
	refused int // entries that wait for their next try, or were given up

	last uint64 // order of the last entry that was there when the session began
	mark func() // lets the mark of the session come; nil: was called

	tags  map[*entry[K]]string // nil: the venue gives no names
	byTag map[string]*entry[K]
}

// job is keys that are asked for in a request of their own.
type job[K comparable] struct {
	op      Op
	entries []*entry[K]
}

func newBook[K comparable](s *Set[K], number uint64, slot int) *book[K] {
	b := &book[K]{set: s, number: number, slot: slot, last: s.order, wake: make(chan struct{}, 1)}
	b.adds.slot = slot
	b.ctx, b.cancel = context.WithCancel(context.Background())
	for _, e := range s.entries {
		b.count(e, 1)
		b.enqueue(e)
	}
	return b
}

// need returns the operation that e needs in this session, 0 if it needs none.
func (b *book[K]) need(e *entry[K]) Op {
	p := &e.at[b.slot]
	switch wanted := e.wanted(); {
	case p.request != nil || e.blocked():
		return 0
	case wanted && p.venue != venueYes && !b.retiring:
		return OpSubscribe
	case !wanted && p.venue != venueNo:
		return OpUnsubscribe
	}
	return 0
}

// enqueue puts e into the list for the operation that e needs, unless e is there.
func (b *book[K]) enqueue(e *entry[K]) {
	p := &e.at[b.slot]
	if p.in&inJob != 0 {
		return
	}
	switch b.need(e) {
	case OpSubscribe:
		if p.queued == 0 {
			heap.Push(&b.adds, e)
		}
	case OpUnsubscribe:
		if p.in&inDrops == 0 {
			p.in |= inDrops
			b.drops = append(b.drops, e)
		}
	}
}

// addJob puts keys into a request of their own.
func (b *book[K]) addJob(op Op, list []*entry[K]) {
	for _, e := range list {
		e.at[b.slot].in |= inJob
	}
	b.jobs = append(b.jobs, job[K]{op, list})
}

// count adds n to the count to which e belongs.
func (b *book[K]) count(e *entry[K], n int) {
	p := &e.at[b.slot]
	wanted := e.wanted()
	switch {
	case p.request != nil:
		b.owe(e, n)
	case wanted == (p.venue == venueYes) && p.venue != venueMaybe:
		if e.refs > 0 && !wanted {
			b.refused += n
		}
	case b.retiring && wanted:
	case e.rests():
		b.refused += n
	default:
		b.owe(e, n)
	}
}

// owe adds n to the counts of the entries that are not settled.
func (b *book[K]) owe(e *entry[K], n int) {
	if b.open += n; e.order <= b.last && e.wanted() {
		b.owed += n
	}
}

// caughtUp reports whether the mark of the session is due, because all keys are settled that were
// wanted when the session began. A key that is added later holds no mark back. The caller holds mu.
func (b *book[K]) caughtUp() bool { return b.owed == 0 && b.mark != nil }

// letMark lets the mark of the session come if it is due.
func (b *book[K]) letMark() {
	b.set.mu.Lock()
	var release func()
	if b.caughtUp() {
		release, b.mark = b.mark, nil
	}
	b.set.mu.Unlock()
	if release != nil {
		release()
	}
}

// uncount must be called before e changes, and recount after it. The caller holds mu.
func (s *Set[K]) uncount(e *entry[K]) {
	for _, b := range s.books {
		b.count(e, -1)
	}
}

// recount counts e again after a change, enqueues e in each session, forgets e if there is no need
// for it any more, and wakes every waiter for a change.
func (s *Set[K]) recount(e *entry[K]) {
	for _, b := range s.books {
		b.count(e, 1)
		b.enqueue(e)
		b.spare(e)
	}
	if e.idle() && s.entries[e.key] == e {
		delete(s.entries, e.key)
		for _, b := range s.books {
			b.adds.remove(e)
		}
	}
	s.changes()
}

// settle ends the request for e, changes the place of e, and enqueues e for its next operation.
func (b *book[K]) settle(e *entry[K], change ...func(p *place[K])) {
	b.set.uncount(e)
	p := &e.at[b.slot]
	p.request = nil
	for _, f := range change {
		f(p)
	}
	b.set.recount(e)
}

// spare cancels the request that e is in if it was not written yet and e is not to be asked for
// any more.
func (b *book[K]) spare(e *entry[K]) {
	r := e.at[b.slot].request
	if r == nil || r.stale || r.state > phaseUnsent || b.spared >= maxSpared {
		return
	}
	if wanted := e.wanted() && !b.retiring; wanted == (r.Op == OpSubscribe) {
		return
	}
	if r.stale = true; r.cancel != nil {
		r.cancel()
	}
}

// maxSpared is how many requests in a row are cancelled. Then one is sent, even if keys are added and
// removed all the time.
const maxSpared = 8

// retire notes that a later session is ready, so that only removals go to this one.
func (b *book[K]) retire() {
	for _, e := range b.set.entries {
		b.count(e, -1)
	}
	b.retiring, b.adds.list = true, nil
	for _, e := range b.set.entries {
		e.at[b.slot].queued = 0
		b.count(e, 1)
		b.spare(e)
	}
	b.kick()
}

// tag keeps the name that the venue has given to a subscription. An empty name ends the last one.
func (b *book[K]) tag(e *entry[K], name string) {
	if was, ok := b.tags[e]; ok {
		delete(b.tags, e)
		if b.byTag[was] == e {
			delete(b.byTag, was)
		}
	}
	if name == "" {
		return
	}
	if b.tags == nil {
		b.tags, b.byTag = map[*entry[K]]string{}, map[string]*entry[K]{}
	}
	b.tags[e], b.byTag[name] = name, e
}

// fail lets the session be ended because of err.
func (b *book[K]) fail(err error) {
	if b.failure == nil {
		b.failure = err
	}
	b.kick()
}

// close ends the book: nothing is on its way any more, and nothing is held.
func (b *book[K]) close() {
	s := b.set
	b.ended = true
	b.cancel()
	for _, x := range b.rejections {
		s.uncount(x.entry)
		if x.entry.trouble != nil {
			x.entry.trouble.judging = false
		}
		s.recount(x.entry)
	}
	b.rejections, b.adds.list, b.drops, b.jobs, b.inflight, b.late = nil, nil, nil, nil, nil, nil
	s.remove(b)
	s.lapse(b.number)
	for _, e := range s.entries {
		s.uncount(e)
		e.at[b.slot] = place[K]{}
		if t := e.trouble; t != nil {
			if t.silent = 0; t.tries == 0 && !t.single && !t.judging && t.dropped == nil {
				e.trouble = nil // an answer was missing once, or the venue has ended what is held elsewhere
			}
		}
		s.recount(e)
	}
}
