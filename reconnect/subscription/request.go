package subscription

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Op is the operation of a request.
type Op uint8

// The operations.
const (
	OpSubscribe   Op = 1 + iota // request the data of the keys
	OpUnsubscribe               // stop the data of the keys
)

// String returns "subscribe" or "unsubscribe".
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

	// ID is a decimal number, from "1" on, that no other request of this Set has in any session. Encode may set
	// another, such as a UUID, but must not repeat an id.
	ID string

	Keys []K      // never empty
	Tags []string // with OpUnsubscribe: the Answer.Tag of each key, or ""; nil if the session has no tags
}

// request is a Request on its way.
type request[K comparable] struct {
	Request[K]
	entries []*entry[K] // of Keys; one is unanswered while its place points here
	state   phase
	ctx     context.Context // of the write
	cancel  context.CancelFunc

	// The fields of the flow.
	number     uint64    // counts the requests of the session, from 1 on
	written    time.Time // when it was written, or zero
	since      time.Time // when it was written, or an earlier request was last answered
	passed     bool      // a later request was answered before it
	superseded bool      // the opposite was done since, for one of its keys
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
	return slices.ContainsFunc(b.flow.list, func(r *request[K]) bool { return r.ID == id && r.state != phaseMade })
}

// next makes the next request, and returns nil if there is none to make now. It asks only for essential
// keys unless all is set. The caller holds mu.
func (b *book[K]) next(all bool) *request[K] {
	if b.todo.Len() == 0 || !b.flow.hasRoom() || !all && b.todo.rank(b.todo.list[0]) > 0 {
		return nil
	}
	first := b.todo.list[0]
	r := &request[K]{}
	r.Op, r.ID = first.at[b.slot].op, b.set.newID()
	r.ctx, r.cancel = context.WithCancel(&b.life)
	most := b.set.o.Batch
	if first.most > 0 {
		most = int(first.most)
	}
	most = min(most, b.todo.Len())
	r.entries, r.Keys = make([]*entry[K], 0, most), make([]K, 0, most)
	for len(r.Keys) < most {
		e := b.todo.list[0]
		if e.at[b.slot].op != r.Op || e.most != first.most || !all && !e.essential {
			break
		}
		b.set.change(e, func() { e.at[b.slot].request = r }) // takes e out of the queue
		r.entries, r.Keys = append(r.entries, e), append(r.Keys, e.key)
	}
	if r.Op == OpUnsubscribe && len(b.tags) > 0 {
		for _, e := range r.entries {
			r.Tags = append(r.Tags, b.tags[e])
		}
	}
	b.flow.add(r, first.trouble != nil && first.trouble.silent > 0)
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
		b.settle(e, func(*place[K]) {})
	}
	b.flow.forget(r)
}
