package call

import "slices"

// line has the questions that wait to go again, in the order in which they were asked. The first
// one has the turn. Client.mu guards it.
type line[K comparable] []*question[K]

// join puts q into its place, unless it is there.
func (l *line[K]) join(q *question[K]) {
	if q.inLine {
		return
	}
	q.inLine = true
	i, _ := slices.BinarySearchFunc(*l, q, func(a, b *question[K]) int {
		if a.order < b.order {
			return -1
		}
		return 1 // never the same
	})
	*l = slices.Insert(*l, i, q)
}

// leave takes q out, and gives the turn to the next. It reports whether q was there.
func (l *line[K]) leave(q *question[K]) bool {
	if !q.inLine {
		return false
	}
	q.inLine = false
	i := slices.Index(*l, q)
	if *l = slices.Delete(*l, i, i+1); len(*l) == 0 {
		*l = nil // so that a quiet Client keeps no memory of it
	} else if i == 0 {
		(*l)[0].wake()
	}
	return true
}

// turn returns nil if q may go, and else a channel that is closed when it may look again.
func (l line[K]) turn(q *question[K]) <-chan struct{} {
	if !q.inLine || l[0] == q {
		return nil
	}
	if q.turn == nil {
		q.turn = make(chan struct{})
	}
	return q.turn
}

// open reports whether q may go, because nothing is before it.
func (l line[K]) open(q *question[K]) bool { return len(l) == 0 || l[0] == q }
