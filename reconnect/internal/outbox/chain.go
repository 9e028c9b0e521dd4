package outbox

import (
	"sync"

	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// entry is one message in the queue.
type entry = queue.Item[sending]

// chain is a list of entries that are in no queue.
type chain struct{ first, last *entry }

// add adds the entries of another chain at the end.
func (c *chain) add(d chain) {
	switch {
	case d.first == nil:
	case c.first == nil:
		*c = d
	default:
		c.last.Value.next, c.last = d.first, d.last
	}
}

// spares is a list of entries to be used again. A Conn has some only while messages are on
// their way.
type spares struct{ first *entry }

// unused holds the spares of all Conns. Each thing in it is the first entry of a list, so that
// a burst of messages asks for entries once.
var unused sync.Pool

// get returns an empty entry.
func (s *spares) get() *entry {
	if s.first == nil {
		s.first, _ = unused.Get().(*entry)
	}
	e := s.first
	if e == nil {
		return new(entry)
	}
	s.first, e.Value.next = e.Value.next, nil
	return e
}

// put adds e, unless somebody else still knows it.
func (s *spares) put(e *entry) {
	if e.Value.shared {
		return
	}
	*e = entry{}
	s.first, e.Value.next = e, s.first
}

// free gives all entries away.
func (s *spares) free() {
	if s.first != nil {
		unused.Put(s.first)
		s.first = nil
	}
}
