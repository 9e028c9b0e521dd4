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

// unused holds entries to be used again, by all Conns.
var unused = sync.Pool{New: func() any { return new(entry) }}

// free gives e away, unless somebody else still knows it.
func free(e *entry) {
	if !e.Value.shared {
		*e = entry{}
		unused.Put(e)
	}
}
