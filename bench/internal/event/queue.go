package event

import "math/bits"

// Queue is a priority queue of events: a 4-ary heap, ordered by time and, where
// that is the same, by the order of insertion. The zero value is empty and ready.
// Nothing is allocated per event: the heap keeps the room that it once needed.
type Queue[E any] struct {
	heap []entry[E]
	seq  uint64
}

type entry[E any] struct {
	at  uint64 // with its sign bit inverted, so that it compares as it should
	seq uint64
	e   E
}

const sign = 1 << 63

// before is 1 if x comes out before y, else 0: x < y as numbers of 128 bits. There
// is no branch in it, because it could not be predicted.
func (x *entry[E]) before(y *entry[E]) int {
	_, borrow := bits.Sub64(x.seq, y.seq, 0)
	_, borrow = bits.Sub64(x.at, y.at, borrow)
	return int(borrow)
}

// Len returns the number of events that wait.
func (q *Queue[E]) Len() int { return len(q.heap) }

// Next returns the time in ns of the event that Pop would return, false if
// there is none.
func (q *Queue[E]) Next() (at int64, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return int64(q.heap[0].at ^ sign), true
}

// Push puts in an event that is due at a time in ns, in O(log n).
func (q *Queue[E]) Push(at int64, e E) {
	added := entry[E]{at: uint64(at) ^ sign, seq: q.seq, e: e}
	q.seq++
	q.heap = append(q.heap, added)
	q.rise(len(q.heap)-1, added)
}

// Pop takes out the earliest event, and of several at one instant the one that
// was put in first, in O(log n). It returns false if there is none.
func (q *Queue[E]) Pop() (at int64, e E, ok bool) {
	n := len(q.heap) - 1
	if n < 0 {
		return 0, e, false
	}
	first, last := q.heap[0], q.heap[n]
	q.heap[n] = entry[E]{}
	q.heap = q.heap[:n]
	if n > 0 {
		q.rise(q.sink(), last)
	}
	return int64(first.at ^ sign), first.e, true
}

// sink moves the hole at the root down to a leaf, each time to the place of the
// earliest child, and returns where it came to rest. What fills it was a leaf
// itself and rarely rises again, so this compares less than a sift that looks
// at it on each level.
func (q *Queue[E]) sink() int {
	heap, hole := q.heap, 0
	for {
		child := 4*hole + 1
		if child+4 > len(heap) {
			break
		}
		c := heap[child : child+4 : child+4]
		left, right := c[1].before(&c[0]), 2+c[3].before(&c[2])
		least := left + (right-left)*c[right&3].before(&c[left&3])
		heap[hole] = c[least&3]
		hole = child + least
	}
	for child := 4*hole + 1; child < len(heap); child = 4*hole + 1 {
		least := child
		for c := child + 1; c < len(heap); c++ {
			least += (c - least) * heap[c].before(&heap[least])
		}
		heap[hole] = heap[least]
		hole = least
	}
	return hole
}

// rise fills the hole with x, or with its parents for as long as x comes before
// them.
func (q *Queue[E]) rise(hole int, x entry[E]) {
	heap := q.heap
	for hole > 0 {
		parent := (hole - 1) / 4
		if x.before(&heap[parent]) == 0 {
			break
		}
		heap[hole] = heap[parent]
		hole = parent
	}
	heap[hole] = x
}
