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

// unused holds chains of entries to be used again, by all Conns: as many in one as were used together, because the pool
// takes as long for a chain as for an entry.
var unused sync.Pool

// spare is the first entry of a chain of those to be used again.
type spare struct {
	first *entry
	count int // of those that add has added
}

// take returns an entry.
func (s *spare) take() *entry {
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

// add adds e, unless somebody else still knows it. It gives the chain away if it is as long as a batch.
func (s *spare) add(e *entry) {
	if e.Value.shared {
		return
	}
	*e = entry{}
	e.Value.next, s.first = s.first, e
	if s.count++; s.count == batchMessages {
		s.free()
	}
}

// free gives the chain away.
func (s *spare) free() {
	if s.first != nil {
		unused.Put(s.first)
	}
	*s = spare{}
}
