package subscription

import "time"

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
	inAdds lists = 1 << iota
	inDrops
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

// inHeap reports whether e is in the heap of a session, so that its order must not change.
func (e *entry[K]) inHeap() bool { return (e.at[0].in|e.at[1].in)&inAdds != 0 }

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

// heap has the entries that are asked for first at its top.
type heap[K comparable] []*entry[K]

// push adds e.
func (h *heap[K]) push(e *entry[K]) {
	*h = append(*h, e)
	list := *h
	for i := len(list) - 1; i > 0; {
		up := (i - 1) / 2
		if !list[i].before(list[up]) {
			return
		}
		list[i], list[up] = list[up], list[i]
		i = up
	}
}

// pop removes the top, which must be there.
func (h *heap[K]) pop() *entry[K] {
	list := *h
	top, last := list[0], len(list)-1
	list[0], list[last] = list[last], nil
	list = list[:last]
	*h = list
	for i := 0; ; {
		least, left := i, 2*i+1
		for child := left; child <= left+1 && child < last; child++ {
			if list[child].before(list[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}
