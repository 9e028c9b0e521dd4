package subscription

import (
	"container/heap"
	"container/list"
	"time"
)

// entry has the state of one key. The Set's mu guards all of it; key and order do not change. Every
// other field changes in Set.change. There is an entry as long as the key is wanted, or a session has
// the key or has asked for it.
type entry[K comparable] struct {
	key       K
	refs      int32 // how often it was added; 0: it is not wanted
	most      int32 // how many keys its request may have after a refusal; 0: none since the venue has agreed last
	essential bool
	order     uint64        // counts the entries, from 1 on
	trouble   *trouble      // nil: none
	group     *group[K]     // in which it rests, or for which it is requested; or nil
	resting   *list.Element // in group.keys, or nil
	at        [2]place[K]   // in the sessions that live: see book.slot
}

// trouble has the failures of a key, in any session, since it was last accepted.
type trouble struct {
	judging bool          // OnReject is to decide
	silent  int8          // how often it was asked for in this session, in a row, without an answer
	tries   int           // how often OnReject has decided
	wait    time.Duration // the last wait
	since   time.Time     // of the first refusal
	session uint64        // in which it was refused last
	err     error         // why

	dropped *RejectedError // why it was given up although it is wanted, or nil. The rest is of its removal then
}

// place has the state of a key in one session.
type place[K comparable] struct {
	request *request[K] // that waits for its answer; nil: none
	venue   venue
	doubt   bool  // the venue may have done an old request after the request on its way
	op      Op    // for which it is in the queue of the session; 0: it is not
	queued  int32 // the place in the queue
}

// venue says whether the venue sends the data of a key.
type venue uint8

const (
	venueNo    venue = iota
	venueYes         // it has said so
	venueMaybe       // a request was not answered
)

// dropped reports whether the key was given up.
func (e *entry[K]) dropped() bool { return e.trouble != nil && e.trouble.dropped != nil }

// wanted reports whether the venue should send the data of the key.
func (e *entry[K]) wanted() bool { return e.refs > 0 && !e.dropped() }

// rests reports whether the key waits for its next try.
func (e *entry[K]) rests() bool { return e.resting != nil }

// blocked reports whether nothing is asked for now.
func (e *entry[K]) blocked() bool { return e.rests() || e.trouble != nil && e.trouble.judging }

// mind returns the trouble of e, which is made if there is none.
func (e *entry[K]) mind() *trouble {
	if e.trouble == nil {
		e.trouble = new(trouble)
	}
	return e.trouble
}

// calm ends the trouble of a key, except that it was given up: that ends when the venue agrees
// to the key, or when the user adds it again.
func (e *entry[K]) calm() {
	e.rise()
	if e.dropped() {
		e.trouble = &trouble{dropped: e.trouble.dropped}
	} else {
		e.trouble = nil
	}
}

// idle reports whether there is no need for e any more.
func (e *entry[K]) idle() bool {
	for i := range e.at {
		if e.at[i].venue != venueNo || e.at[i].request != nil {
			return false
		}
	}
	return e.refs == 0 && (e.trouble == nil || !e.trouble.judging)
}

// queue is a heap of the entries for which one session has to ask: see container/heap.
type queue[K comparable] struct {
	slot int // see book.slot
	list []*entry[K]
}

// rank is 0 for essential keys, 1 for removals, and 2 for all others.
func (q *queue[K]) rank(e *entry[K]) int {
	switch {
	case e.at[q.slot].op == OpUnsubscribe:
		return 1
	case e.essential:
		return 0
	}
	return 2
}

// Less orders by rank. Within a rank the keys of a refused batch come first, and keys that were refused
// alone last, so that a batch is of keys with the same limit.
func (q *queue[K]) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	if x, y := q.rank(a), q.rank(b); x != y {
		return x < y
	}
	if x, y := uint32(a.most-2), uint32(b.most-2); x != y { // 2, 3 and so on; 0; 1
		return x < y
	}
	return a.order < b.order
}

// Len, Swap, Push and Pop implement [heap.Interface].
func (q *queue[K]) Len() int { return len(q.list) }

func (q *queue[K]) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].at[q.slot].queued = int32(i)
	q.list[j].at[q.slot].queued = int32(j)
}

func (q *queue[K]) Push(x any) {
	e := x.(*entry[K])
	e.at[q.slot].queued = int32(len(q.list))
	q.list = append(q.list, e)
}

func (q *queue[K]) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	q.list[last] = nil
	if q.list = q.list[:last]; last == 0 {
		q.list = nil
	}
	return e
}

// add puts e into the queue, for op.
func (q *queue[K]) add(e *entry[K], op Op) {
	e.at[q.slot].op = op
	heap.Push(q, e)
}

// remove takes e out, if e is there.
func (q *queue[K]) remove(e *entry[K]) {
	if p := &e.at[q.slot]; p.op != 0 {
		heap.Remove(q, int(p.queued))
		p.op = 0
	}
}
