package call

import (
	"cmp"
	"container/list"
)

// line holds the questions that wait to go again, in the order in which they were asked: the first has
// the turn. A join walks from the place of the last join, so that questions that join in order, as those
// of a lost session do, cost the same each, however many there are. Client.mu guards a line.
type line[K comparable] struct {
	list.List               // of *question[K]
	last      *list.Element // where the last question has joined; nil: nobody waits
}

func at[K comparable](e *list.Element) *question[K] { return e.Value.(*question[K]) }

// join puts q into the line, unless q is there.
func (l *line[K]) join(q *question[K]) {
	if q.place != nil {
		return
	}
	e := l.last
	for e != nil && at[K](e).order > q.order {
		e = e.Prev()
	}
	for e != nil && e.Next() != nil && at[K](e.Next()).order < q.order {
		e = e.Next()
	}
	if e == nil {
		q.place = l.PushFront(q)
	} else {
		q.place = l.InsertAfter(q, e)
	}
	l.last = q.place
}

// leave takes q out of the line, and gives the turn to the next question. It reports whether q was
// in the line.
func (l *line[K]) leave(q *question[K]) bool {
	if q.place == nil {
		return false
	}
	if l.last == q.place {
		l.last = cmp.Or(q.place.Prev(), q.place.Next())
	}
	l.Remove(q.place)
	q.place = nil
	l.wake()
	return true
}

// wake wakes the goroutine of the question that has the turn, if it waits for that.
func (l *line[K]) wake() {
	if l.Len() == 0 {
		return
	}
	if q := at[K](l.Front()); q.turn != nil {
		close(q.turn)
		q.turn = nil
	}
}

// turn returns nil if q may go, and else a channel that is closed when q may look again.
func (l *line[K]) turn(q *question[K]) <-chan struct{} {
	if q.place == nil || l.open(q) {
		return nil
	}
	if q.turn == nil {
		q.turn = make(chan struct{})
	}
	return q.turn
}

// open reports whether q may go, because no question is before q.
func (l *line[K]) open(q *question[K]) bool { return l.Len() == 0 || l.Front() == q.place }
