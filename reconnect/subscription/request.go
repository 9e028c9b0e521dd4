package subscription

import (
	"container/heap"
	"context"
	"slices"
	"strconv"
	"time"
)

// Op is the operation of a request.
type Op uint8

// The operations. The zero Op is neither: in an [Answer] it means that the answer does not say.
const (
	OpSubscribe   Op = 1 + iota // the venue is to send the data of the keys
	OpUnsubscribe               // the venue is to send them no more
)

// String returns "subscribe" or "unsubscribe", which many venues want in the request.
func (o Op) String() string {
	switch o {
	case OpSubscribe:
		return "subscribe"
	case OpUnsubscribe:
		return "unsubscribe"
	}
	return "unknown"
}

// Request is one message to the venue, about one key or several.
type Request[K comparable] struct {
	Op Op

	// ID names the request. It is a decimal number, from "1" on, that this Set gives to no other
	// request of any session. Encode may set another id, such as a UUID, or one that differs from
	// the ids of another layer. Encode must not repeat an id.
	ID string

	Keys []K      // never empty
	Tags []string // with OpUnsubscribe: the Answer.Tag of each key, "" for a key without; nil if no key has one
}

// request is a Request on its way.
type request[K comparable] struct {
	Request[K]
	entries  []*entry[K] // of Keys; one is unanswered while its place points here
	state    phase
	stale    bool               // it was cancelled, because a key of it is not to be asked for any more
	cancel   context.CancelFunc // ends the wait for its turn to be written; nil: it does not wait
	deadline time.Time          // of the answer; zero: not known yet, or none
}

// phase is how far a request is.
type phase uint8

const (
	phaseMade    phase = iota // Encode makes its message
	phaseUnsent               // it is being written, or waits for its turn; an answer may come already
	phaseWritten              // it waits for its answer
	phaseSettled              // it waits for nothing
)

// newID returns the id of the next request. The caller holds mu.
func (s *Set[K]) newID() string {
	s.lastID++
	return strconv.FormatUint(s.lastID, 10)
}

// gave reports whether newID has returned id. The caller holds mu.
func (s *Set[K]) gave(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	return err == nil && n > 0 && n <= s.lastID
}

// waits reports whether a request waits for an answer with this id. The caller holds mu.
func (b *book[K]) waits(id string) bool {
	return slices.ContainsFunc(b.inflight, func(r *request[K]) bool { return r.ID == id && r.state != phaseMade })
}

// next takes the keys of the next request, and returns nil if there is none to make now. Only
// essential keys are taken unless all is set. The caller holds mu.
func (b *book[K]) next(all bool) *request[K] {
	if len(b.inflight) >= b.set.o.InFlight {
		return nil
	}
	for len(b.jobs) > 0 {
		j := b.jobs[0]
		b.jobs[0] = job[K]{}
		b.jobs = b.jobs[1:]
		if r := b.take(j); r != nil {
			return r
		}
	}
	if len(b.drops) > 0 && all {
		if list := b.takeDrops(); len(list) > 0 {
			return b.make(OpUnsubscribe, list)
		}
	}
	if list := b.takeAdds(all); len(list) > 0 {
		return b.make(OpSubscribe, list)
	}
	if len(b.jobs) > 0 { // keys that must be alone, which the two have put there
		return b.next(all)
	}
	b.jobs = nil
	return nil
}

// take makes a request of those keys of a job that still need it, nil if none does.
func (b *book[K]) take(j job[K]) *request[K] {
	var list []*entry[K]
	for _, e := range j.entries {
		e.at[b.slot].in &^= inJob
		if b.need(e) == j.op {
			list = append(list, e)
		} else {
			b.enqueue(e)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return b.make(j.op, list)
}

// takeDrops takes a batch of keys to unsubscribe.
func (b *book[K]) takeDrops() (list []*entry[K]) {
	for len(b.drops) > 0 && len(list) < b.set.o.Batch {
		e := b.drops[0]
		b.drops[0] = nil
		b.drops = b.drops[1:]
		p := &e.at[b.slot]
		if p.in &^= inDrops; b.need(e) != OpUnsubscribe {
			continue
		}
		if e.alone() {
			b.addJob(OpUnsubscribe, []*entry[K]{e})
			continue
		}
		list = append(list, e)
	}
	if len(b.drops) == 0 {
		b.drops = nil
	}
	return list
}

// takeAdds takes a batch of keys to subscribe to.
func (b *book[K]) takeAdds(all bool) (list []*entry[K]) {
	for b.adds.Len() > 0 && len(list) < b.set.o.Batch && (all || b.adds.list[0].essential) {
		e := heap.Pop(&b.adds).(*entry[K])
		if b.need(e) != OpSubscribe {
			continue
		}
		if e.alone() {
			b.addJob(OpSubscribe, []*entry[K]{e})
			continue
		}
		list = append(list, e)
	}
	return list
}

// make makes a request for these keys.
func (b *book[K]) make(op Op, list []*entry[K]) *request[K] {
	r := &request[K]{entries: list}
	r.Op, r.ID = op, b.set.newID()
	r.Keys = make([]K, len(list))
	for i, e := range list {
		b.set.uncount(e)
		e.at[b.slot].request = r
		b.set.recount(e)
		r.Keys[i] = e.key
		if tag := b.tags[e]; tag != "" && op == OpUnsubscribe {
			if r.Tags == nil {
				r.Tags = make([]string, len(list))
			}
			r.Tags[i] = tag
		}
	}
	b.inflight = append(b.inflight, r)
	return r
}

// unanswered returns the keys of r that it still waits for.
func (b *book[K]) unanswered(r *request[K]) []*entry[K] {
	var list []*entry[K]
	for _, e := range r.entries {
		if e.at[b.slot].request == r {
			list = append(list, e)
		}
	}
	return list
}

// release takes back a request that was not sent. Its keys are asked for again.
func (b *book[K]) release(r *request[K]) {
	for _, e := range b.unanswered(r) {
		b.settle(e)
	}
	b.forget(r)
}

// takeBack is release for a request that was cancelled.
func (b *book[K]) takeBack(r *request[K]) {
	b.spared++
	b.release(r)
}

// forget takes r out of the list of requests on their way.
func (b *book[K]) forget(r *request[K]) {
	r.state = phaseSettled
	for i, other := range b.inflight {
		if other == r {
			b.inflight = append(b.inflight[:i], b.inflight[i+1:]...)
			b.inflight[:len(b.inflight)+1][len(b.inflight)] = nil
			return
		}
	}
}
