package subscription

import (
	"container/heap"
	"time"
)

// entry has the state of one key. The Set's mu guards all of it; key, order and
// essential do not change. There is one as long as the key is wanted, or a session has it or
// has asked for it.
type entry[K comparable] struct {
	key       K
	refs      int32 // how often it was added; 0: it is not wanted
	essential bool
	order     uint64      // counts the entries, from 1 on
	trouble   *trouble    // nil: none
	at        [2]place[K] // in the sessions that live: see book.slot
}

// trouble has the failures of a key, in any session, since it was last accepted.
type trouble struct {
	single  bool          // it was refused alone, so it is asked for alone, because it would spoil a batch
	judging bool          // OnReject is to decide
	resting bool          // it is not asked for until due
	silent  int8          // how often it was asked for in this session, in a row, without an answer
	tries   int           // how often OnReject has decided
	wait    time.Duration // the last wait
	since   time.Time     // of the first refusal
	due     time.Time
	session uint64 // in which it was refused last
	err     error  // why

	dropped *RejectedError // why it was given up; nil: it was not. The rest is of its removal then
}

// place has the state of a key in one session.
type place[K comparable] struct {
	request *request[K] // that waits for its answer; nil: none
	venue   venue
	in      lists
	queued  int32 // the place in the queue of the session, from 1 on; 0: none
}

// venue says whether the venue sends the data of a key.
type venue uint8

const (
	venueNo    venue = iota
	venueYes         // it has said so
	venueMaybe       // a request was not answered
)

// lists are the lists of a book in which an entry is. It is taken out of them only when its
// turn comes.
type lists uint8

const (
	inDrops lists = 1 << iota
	inJob

	inDoubt // no list: the venue may have done an old request after the request on its way
)

// wanted reports whether the venue should send the data of the key.
func (e *entry[K]) wanted() bool {
	return e.refs > 0 && (e.trouble == nil || e.trouble.dropped == nil)
}

// alone reports whether the key must not be in one request with others.
func (e *entry[K]) alone() bool { return e.trouble != nil && e.trouble.single }

// rests reports whether the key waits for its next try.
func (e *entry[K]) rests() bool { return e.trouble != nil && e.trouble.resting }

// blocked reports whether nothing is asked for now.
func (e *entry[K]) blocked() bool {
	return e.trouble != nil && (e.trouble.resting || e.trouble.judging)
}

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
	if e.refs == 0 || e.wanted() {
		e.trouble = nil
	} else {
		e.trouble = &trouble{dropped: e.trouble.dropped}
	}
}

// queued reports whether e is in the queue of a session, so that its order must not change.
func (e *entry[K]) queued() bool { return e.at[0].queued+e.at[1].queued > 0 }

// idle reports whether there is no need for e any more.
func (e *entry[K]) idle() bool {
	for i := range e.at {
		if e.at[i].venue != venueNo || e.at[i].request != nil {
			return false
		}
	}
	return e.refs == 0 && (e.trouble == nil || !e.trouble.judging)
}

// before reports whether e is asked for before other.
func (e *entry[K]) before(other *entry[K]) bool {
	if e.essential != other.essential {
		return e.essential
	}
	return e.order < other.order
}

// queue is a heap of the entries to subscribe to in one session: see container/heap. Those that are
// asked for first are at its top.
type queue[K comparable] struct {
	slot int // see book.slot
	list []*entry[K]
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (q *queue[K]) Len() int           { return len(q.list) }
func (q *queue[K]) Less(i, j int) bool { return q.list[i].before(q.list[j]) }

func (q *queue[K]) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].at[q.slot].queued = int32(i + 1)
	q.list[j].at[q.slot].queued = int32(j + 1)
}

func (q *queue[K]) Push(x any) {
	e := x.(*entry[K])
	q.list = append(q.list, e)
	e.at[q.slot].queued = int32(len(q.list))
}

func (q *queue[K]) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	q.list[last] = nil
	if q.list = q.list[:last]; last == 0 {
		q.list = nil
	}
	e.at[q.slot].queued = 0
	return e
}

// remove takes e out, if it is there.
func (q *queue[K]) remove(e *entry[K]) {
	if i := e.at[q.slot].queued; i > 0 {
		heap.Remove(q, int(i-1))
	}
}
