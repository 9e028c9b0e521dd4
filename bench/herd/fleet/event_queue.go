package fleet

import (
	"cmp"
	"slices"

	"github.com/redial-go/redial/bench/internal/event"
)

// eventQueue is the event queue of a herd: of a million clients each has one thing to
// come, most of them in seconds. Those lie on heaps of unsorted pages, one heap for
// each span of time. When its time comes a heap is sorted; only what is added to the
// present span goes into a real queue. All that is in use is small enough for the
// processor's cache.
type eventQueue struct {
	far   []heap // by span
	spare *page  // emptied, to be written on again
	span  int    // the present one; all before it are empty
	end   int64  // what is due at this time or later never happens

	present []note             // of what was noted for the present span before it came, what is left, in order
	room    [2][]note          // for that
	near    event.Queue[int32] // what was noted since

	// still reports whether a connection, of this number, still has an event at that time. It
	// brings what is known of the connection into the cache.
	still func(number int32, at int64) bool
}

// heap is the pages of a span, in the order in which they were written.
type heap struct{ first, last *page }

type page struct {
	next  *page
	used  int
	notes [127]note
}

type note struct {
	at  int64
	who int32
}

const (
	digitBits = 12
	spanBits  = 2 * digitBits // 2^24 ns = 17 ms
)

func newEventQueue(end int64, still func(int32, int64) bool) *eventQueue {
	return &eventQueue{far: make([]heap, end>>spanBits+1), end: end, still: still}
}

// push notes an event of who, at a time not before that of the last one popped.
func (q *eventQueue) push(at int64, who int32) {
	if at >= q.end {
		return
	}
	span := int(at >> spanBits)
	if span <= q.span {
		q.near.Push(at, who)
		return
	}
	h := &q.far[span]
	if h.last == nil || h.last.used == len(h.last.notes) {
		q.addPage(h)
	}
	h.last.notes[h.last.used] = note{at, who}
	h.last.used++
}

// addPage puts an empty page on h.
func (q *eventQueue) addPage(h *heap) {
	p := q.spare
	if p == nil {
		p = new(page)
	} else {
		q.spare, p.next, p.used = p.next, nil, 0
	}
	if h.last == nil {
		h.first = p
	} else {
		h.last.next = p
	}
	h.last = p
}

// pop returns what is due next; what is due at one instant in the order in which
// it was noted.
func (q *eventQueue) pop() (at int64, who int32, ok bool) {
	for {
		next, late := q.near.Next()
		if len(q.present) > 0 && (!late || q.present[0].at <= next) {
			n := q.present[0]
			q.present = q.present[1:]
			return n.at, n.who, true
		}
		if late {
			return q.near.Pop()
		}
		if q.span+1 >= len(q.far) {
			return 0, 0, false
		}
		q.span++
		q.open()
	}
}

// open sorts what is on the pages of the present span, but for what is not to
// happen any more. It looks at all clients first: the processor fetches many of
// them at a time then, and this is what a large herd spends most of its time on.
func (q *eventQueue) open() {
	notes := q.room[0][:0]
	for p := q.far[q.span].first; p != nil; {
		for _, n := range p.notes[:p.used] {
			if q.still(n.who, n.at) {
				notes = append(notes, n)
			}
		}
		p.next, q.spare, p = q.spare, p, p.next
	}
	q.far[q.span], q.room[0] = heap{}, notes
	if len(notes) < 1<<digitBits/16 {
		slices.SortStableFunc(notes, func(x, y note) int { return cmp.Compare(x.at, y.at) })
	} else {
		q.room[1] = slices.Grow(q.room[1][:0], len(notes))[:len(notes)]
		byDigit(q.room[1], notes, 0)
		byDigit(notes, q.room[1], digitBits)
	}
	q.present = notes
}

// byDigit sorts from into to by one digit of the time, without changing the order
// of equals: a pass of a radix sort.
func byDigit(to, from []note, shift int) {
	const digits = 1 << digitBits
	var place [digits]int32
	for _, n := range from {
		place[n.at>>shift&(digits-1)]++
	}
	sum := int32(0)
	for i, n := range place {
		place[i] = sum
		sum += n
	}
	for _, n := range from {
		p := &place[n.at>>shift&(digits-1)]
		to[*p] = n
		*p++
	}
}
