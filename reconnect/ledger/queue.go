package ledger

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// queue has the entries of a Ledger in ascending order of ID and of Seq. The Ledger's mutex
// guards it. An entry that is removed from the middle stays as a gap, with ID gone, until gaps
// are the half.
type queue struct {
	entries []queued // from head on
	head    int
	live    int
	bytes   int
}

// idleEntries is for how many entries an empty queue may keep room.
const idleEntries = 8

// queued is an [Entry], in less memory.
type queued struct {
	id, seq     uint64
	added       int64 // nanoseconds since 1970; ascending, too
	data        []byte
	sent, again bool
	gone        bool
}

func (q *queued) entry() Entry {
	return Entry{Record{ID: q.id, Seq: q.seq, Added: time.Unix(0, q.added), Data: q.data}, q.sent, q.again}
}

func (q *queue) push(e queued) {
	if len(q.entries) == cap(q.entries) && q.head > len(q.entries)/2 {
		q.compact()
	}
	for i := len(q.entries) - 1; i >= q.head && q.entries[i].added > e.added; i-- {
		q.entries[i].added = e.added // because the clock was set back
	}
	q.entries = append(q.entries, e)
	q.live++
	q.bytes += len(e.data)
}

// remove removes e, which is invalid after it.
func (q *queue) remove(e *queued) {
	q.live--
	q.bytes -= len(e.data)
	e.data, e.gone = nil, true
	for q.head < len(q.entries) && q.entries[q.head].gone {
		q.head++
	}
	switch rest := len(q.entries) - q.head; {
	case q.live == 0:
		q.entries, q.head = q.entries[:0], 0
		if cap(q.entries) > idleEntries {
			q.entries = nil // so that an idle Ledger is small
		}
	case rest > 2*q.live+16:
		q.compact()
	}
}

// compact removes the gaps. Pointers to entries are invalid after it.
func (q *queue) compact() {
	n := 0
	for i := q.head; i < len(q.entries); i++ {
		if !q.entries[i].gone {
			q.entries[n] = q.entries[i]
			n++
		}
	}
	clear(q.entries[n:])
	q.entries, q.head = q.entries[:n], 0
}

// first returns the first entry, nil if there is none. It is never a gap.
func (q *queue) first() *queued {
	if q.live == 0 {
		return nil
	}
	return &q.entries[q.head]
}

// from returns the first entry with this Seq or a higher one, nil if there is none.
func (q *queue) from(seq uint64) *queued {
	rest := q.entries[q.head:]
	i := sort.Search(len(rest), func(i int) bool { return rest[i].seq >= seq })
	for ; i < len(rest); i++ {
		if !rest[i].gone {
			return &rest[i]
		}
	}
	return nil
}

// bySeq returns the entry with this Seq, nil if there is none.
func (q *queue) bySeq(seq uint64) *queued {
	if e := q.from(seq); e != nil && e.seq == seq {
		return e
	}
	return nil
}

// byID returns the entry with this ID, nil if there is none.
func (q *queue) byID(id uint64) *queued {
	rest := q.entries[q.head:]
	i, found := slices.BinarySearchFunc(rest, id, func(e queued, id uint64) int { return cmp.Compare(e.id, id) })
	if !found || rest[i].gone {
		return nil
	}
	return &rest[i]
}

// all calls yield with each entry in order, which must not remove any.
func (q *queue) all(yield func(*queued) bool) {
	for i := q.head; i < len(q.entries); i++ {
		if e := &q.entries[i]; !e.gone && !yield(e) {
			return
		}
	}
}
