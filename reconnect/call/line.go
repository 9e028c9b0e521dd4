package call

import "container/heap"

// line holds the questions that wait to go again, as a heap: the question that was asked first is
// at the front and has the turn. A join or a leave visits a number of questions that grows with
// the logarithm of the length, so that a loss of 100,000 questions holds Client.mu only briefly at
// a time. Client.mu guards a line.
type line[K comparable] []*question[K]

// join puts q into the line, unless q is there.
func (l *line[K]) join(q *question[K]) {
	if q.index == 0 {
		heap.Push(l, q)
	}
}

// leave takes q out of the line, and gives the turn to the next question. It reports whether q was
// in the line.
func (l *line[K]) leave(q *question[K]) bool {
	if q.index == 0 {
		return false
	}
	first := (*l)[0] == q
	if heap.Remove(l, q.index-1); len(*l) == 0 {
		*l = nil // so that a quiet Client keeps no memory of the line
	} else if first {
		l.wake()
	}
	return true
}

// wake wakes the goroutine of the question that has the turn, if it waits for that.
func (l line[K]) wake() {
	if len(l) > 0 && l[0].turn != nil {
		close(l[0].turn)
		l[0].turn = nil
	}
}

// turn returns nil if q may go, and else a channel that is closed when q may look again.
func (l line[K]) turn(q *question[K]) <-chan struct{} {
	if q.index == 0 || l[0] == q {
		return nil
	}
	if q.turn == nil {
		q.turn = make(chan struct{})
	}
	return q.turn
}

// open reports whether q may go, because no question is before q.
func (l line[K]) open(q *question[K]) bool { return len(l) == 0 || l[0] == q }

// The rest is for package heap.

func (l line[K]) Len() int           { return len(l) }
func (l line[K]) Less(i, j int) bool { return l[i].order < l[j].order }

func (l line[K]) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i+1, j+1
}

func (l *line[K]) Push(q any) {
	*l = append(*l, q.(*question[K]))
	q.(*question[K]).index = len(*l)
}

func (l *line[K]) Pop() any {
	last := len(*l) - 1
	q := (*l)[last]
	(*l)[last] = nil
	*l, q.index = (*l)[:last], 0
	return q
}
