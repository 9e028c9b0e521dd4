package inbox

import (
	"sync"

	"github.com/redial-go/redial/reconnect/internal/chunk"
)

// slots are some messages of an inbox, in order.
type slots struct {
	list []unread // never grows beyond its capacity
	next *slots   // those behind
}

// unread is a message in an inbox, and the chunk that its data lies in, if it does.
type unread struct {
	Item
	chunk *chunk.Chunk
}

// fewSlots and manySlots are the two capacities. All connections share the slots that are
// free, so that an inbox which is full and empty by turns does not allocate.
const (
	fewSlots  = 8
	manySlots = 64
)

var few, many sync.Pool

// newSlots returns slots for at least n messages, of which it has none.
func newSlots(n int) *slots {
	pool, capacity := &few, fewSlots
	if n > fewSlots {
		pool, capacity = &many, manySlots
	}
	if s, ok := pool.Get().(*slots); ok {
		return s
	}
	return &slots{list: make([]unread, 0, capacity)}
}

// free gives s back, which nobody uses any more.
func (s *slots) free() {
	clear(s.list)
	s.list, s.next = s.list[:0], nil
	if cap(s.list) == fewSlots {
		few.Put(s)
	} else {
		many.Put(s)
	}
}

// add appends u to s, which may be nil, and returns the result. Few slots become many.
func (s *slots) add(u unread) *slots {
	if s == nil {
		s = newSlots(1)
	} else if len(s.list) == cap(s.list) {
		larger := newSlots(manySlots)
		larger.list = append(larger.list, s.list...)
		s.free()
		s = larger
	}
	s.list = append(s.list, u)
	return s
}

// join appends the messages of more to s, if s is not nil and has room for all of them, and
// frees more. It reports whether it did.
func (s *slots) join(more *slots) bool {
	if s == nil || len(s.list)+len(more.list) > cap(s.list) {
		return false
	}
	s.list = append(s.list, more.list...)
	more.free()
	return true
}

// len returns how many messages there are in s, which may be nil.
func (s *slots) len() int {
	if s == nil {
		return 0
	}
	return len(s.list)
}
