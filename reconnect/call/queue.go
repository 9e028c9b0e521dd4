package call

import (
	"cmp"
	"container/list"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// queue holds requests in their order. A join walks from the place of the last join, so that requests that
// join in order, as those of a lost session do, cost the same each, however many there are. Client.mu guards
// a queue, except changed.
type queue[K comparable] struct {
	list.List               // of *pending[K]
	last      *list.Element // where the last request has joined, or a neighbor, or nil if the queue is empty
	changed   xsync.Signal  // the queue has become empty; in Client.line also: a session or the Conn has ended
}

func at[K comparable](e *list.Element) *pending[K] { return e.Value.(*pending[K]) }

// join adds p, unless p is in the queue.
func (q *queue[K]) join(p *pending[K]) {
	if p.place != nil {
		return
	}
	e := q.last
	for e != nil && at[K](e).order > p.order {
		e = e.Prev()
	}
	for e != nil && e.Next() != nil && at[K](e.Next()).order < p.order {
		e = e.Next()
	}
	if e == nil {
		p.place = q.PushFront(p)
	} else {
		p.place = q.InsertAfter(p, e)
	}
	q.last = p.place
}

// leave removes p, if it is in the queue, and gives the turn to the next request.
func (q *queue[K]) leave(p *pending[K]) {
	if p.place == nil {
		return
	}
	if q.last == p.place {
		q.last = cmp.Or(p.place.Prev(), p.place.Next())
	}
	q.Remove(p.place)
	p.place = nil
	if q.wake(); q.Len() == 0 {
		q.changed.Broadcast()
	}
}

// wake wakes the goroutine of the first request, if it waits for its turn.
func (q *queue[K]) wake() {
	if first := q.Front(); first != nil && at[K](first).turn != nil {
		close(at[K](first).turn)
		at[K](first).turn = nil
	}
}

// open reports whether p may be sent, because no request comes before it.
func (q *queue[K]) open(p *pending[K]) bool { return q.Len() == 0 || q.Front() == p.place }

// turn adds p, unless p is in the queue, and returns a channel that is closed when p is the first.
func (q *queue[K]) turn(p *pending[K]) <-chan struct{} {
	q.join(p)
	if p.turn == nil {
		p.turn = make(chan struct{})
	}
	turn := p.turn
	if q.Front() == p.place { // it comes before those that were in the queue already
		q.wake()
	}
	return turn
}
