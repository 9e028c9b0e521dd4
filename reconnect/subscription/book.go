package subscription

import (
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// book has the keys of one session, and the work that the session has to do. The Set's mu guards the
// fields that change.
type book[K comparable] struct {
	set    *Set[K]
	number uint64 // of the session
	slot   int    // the place of each entry that belongs to this session
	life   xsync.Context
	wake   chan struct{} // holds one wake-up for the worker

	ready    bool // it was ready
	moved    bool // the venue has agreed to a key since the last call of progressed
	retiring bool // a later session is ready
	ended    bool // it was lost, or nothing can be written by it any more
	working  bool // there is a worker

	todo     queue[K] // the keys to ask for
	flow     flow[K]  // the requests
	nameless bool     // an answer with neither ID nor keys came, although InFlight is more than 1

	rejections []rejection[K] // on which OnReject is to decide
	failure    error          // for which the session is to be ended; nil: none
	hold       time.Time      // nothing is written before
	spared     int            // how many requests in a row were cancelled unsent

	open    int // entries for which something is to be done, or is on its way
	owed    int // of these, those that are wanted, and were there when the session began
	refused int // entries that wait for their next try, or were given up

	last uint64 // order of the last entry that was there when the session began
	mark func() // lets the mark of the session come; nil: was called

	tags  map[*entry[K]]string // nil: the venue gives no names
	byTag map[string]*entry[K]
}

func newBook[K comparable](s *Set[K], number uint64, slot int) *book[K] {
	b := &book[K]{set: s, number: number, slot: slot, last: s.order, wake: make(chan struct{}, 1)}
	b.flow = newFlow[K](&s.patience, s.o.InFlight)
	b.todo.slot = slot
	for _, e := range s.entries {
		b.enter(e)
	}
	return b
}

// lacks returns the operation that brings e into the wanted state in this session, 0 if e is there.
func (b *book[K]) lacks(e *entry[K]) Op {
	switch at := e.at[b.slot].venue; {
	case e.wanted() && at != venueYes && !b.retiring:
		return OpSubscribe
	case !e.wanted() && at != venueNo:
		return OpUnsubscribe
	}
	return 0
}

// needless reports whether a request for e is of no use any more, so that its failure does not
// matter.
func (b *book[K]) needless(op Op, e *entry[K]) bool {
	return e.wanted() != (op == OpSubscribe) || op == OpSubscribe && b.retiring
}

// count adds n to the count to which e belongs.
func (b *book[K]) count(e *entry[K], n int) {
	lacks := b.lacks(e) != 0
	switch {
	case e.at[b.slot].request != nil, lacks && !e.rests():
		if b.open += n; e.order <= b.last && e.wanted() {
			b.owed += n
		}
	case lacks, e.dropped():
		b.refused += n
	}
}

// enter counts e, and puts e into the queue if something is to be asked for.
func (b *book[K]) enter(e *entry[K]) {
	b.count(e, 1)
	if op := b.lacks(e); op != 0 && e.at[b.slot].request == nil && !e.blocked() {
		b.todo.add(e, op)
	}
}

// leave undoes enter.
func (b *book[K]) leave(e *entry[K]) {
	b.count(e, -1)
	b.todo.remove(e)
}

// change changes e by f. Then it counts and queues e anew in each session, cancels a request that e does
// not need any more, forgets e if there is no need for it, and wakes every waiter for a change.
func (s *Set[K]) change(e *entry[K], f func()) {
	for _, b := range s.books {
		b.leave(e)
	}
	f()
	for _, b := range s.books {
		b.enter(e)
		b.spare(e)
	}
	if e.idle() && s.entries[e.key] == e {
		e.rise()
		delete(s.entries, e.key)
	}
	s.changed.Broadcast()
}

// settle ends the request for e, and changes the place of e by f.
func (b *book[K]) settle(e *entry[K], f func(p *place[K])) {
	b.set.change(e, func() {
		p := &e.at[b.slot]
		p.request = nil
		f(p)
	})
}

// spare cancels the request that e is in if it was not written yet and e is not to be asked for
// any more.
func (b *book[K]) spare(e *entry[K]) {
	r := e.at[b.slot].request
	if r != nil && r.state <= phaseUnsent && b.spared < maxSpared && b.needless(r.Op, e) {
		r.cancel()
	}
}

// maxSpared is how many requests in a row are cancelled. Then one is sent, even if keys are added and
// removed all the time.
const maxSpared = 8

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

// retire notes that a later session is ready, so that only removals go to this one. If it does not hold
// all keys yet it never will, and has no mark; the later session has one. The caller kicks b.
func (b *book[K]) retire() {
	if b.owed > 0 {
		b.mark = nil
	}
	for _, e := range b.set.entries {
		b.leave(e)
	}
	b.retiring = true
	for _, e := range b.set.entries {
		b.enter(e)
		b.spare(e)
	}
}

// tag keeps the name that the venue has given to a subscription, in place of the last one. An empty
// name is none.
func (b *book[K]) tag(e *entry[K], name string) {
	if was := b.tags[e]; b.byTag[was] == e {
		delete(b.byTag, was)
	}
	delete(b.tags, e)
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
}

// close ends the book: nothing is on its way any more, and nothing is held.
func (b *book[K]) close() {
	s := b.set
	b.ended = true
	b.life.End()
	s.books = slices.DeleteFunc(s.books, func(other *book[K]) bool { return other == b })
	for _, x := range b.rejections {
		s.change(x.entry, func() {
			if t := x.entry.trouble; t != nil {
				t.judging = false
			}
		})
	}
	b.todo.list, b.rejections, b.flow.list, b.flow.late = nil, nil, nil, nil
	for _, e := range s.entries {
		s.change(e, func() {
			e.at[b.slot] = place[K]{}
			if t := e.trouble; t != nil {
				if t.silent = 0; t.tries == 0 && !t.judging && t.dropped == nil {
					e.trouble = nil // an answer was missing once, or the venue has ended what is held elsewhere
				}
			}
		})
	}
}
