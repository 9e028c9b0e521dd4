package event

// FIFO is a queue of events that are put in in order of time: first in, first
// out, in O(1). The zero value is empty and ready. Nothing is allocated per
// event: the ring keeps the room that it once needed.
type FIFO[E any] struct {
	ring []dated[E] // its length is 0 or a power of two
	head int        // of the first, below len(ring)
	size int
}

type dated[E any] struct {
	at int64
	e  E
}

// Len returns the number of events that wait.
func (l *FIFO[E]) Len() int { return l.size }

// Next returns the time in ns of the event that Pop would return, false if
// there is none.
func (l *FIFO[E]) Next() (at int64, ok bool) {
	if l.size == 0 {
		return 0, false
	}
	return l.ring[l.head].at, true
}

// Peek returns the event that Pop would return, and leaves it.
func (l *FIFO[E]) Peek() (at int64, e E, ok bool) {
	if l.size == 0 {
		return 0, e, false
	}
	first := &l.ring[l.head]
	return first.at, first.e, true
}

// Push puts in an event that is due at a time in ns. That must not be before
// the time of one put in earlier: it comes out after it all the same.
func (l *FIFO[E]) Push(at int64, e E) {
	if l.size == len(l.ring) {
		l.grow()
	}
	l.ring[(l.head+l.size)&(len(l.ring)-1)] = dated[E]{at: at, e: e}
	l.size++
}

// Pop takes out the event that was put in first. It returns false if there is
// none.
func (l *FIFO[E]) Pop() (at int64, e E, ok bool) {
	if l.size == 0 {
		return 0, e, false
	}
	first := l.ring[l.head]
	l.ring[l.head] = dated[E]{}
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.size--
	return first.at, first.e, true
}

func (l *FIFO[E]) grow() {
	ring := make([]dated[E], max(64, 2*len(l.ring)))
	n := copy(ring, l.ring[l.head:])
	copy(ring[n:], l.ring[:l.head])
	l.ring, l.head = ring, 0
}
