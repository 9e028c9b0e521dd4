package queue

import (
	"container/heap"
	"fmt"
	"iter"
	"time"
)

// Queue holds items in order. Adding or removing an item takes constant time, or time
// logarithmic in the number of items if it expires earlier than one that was added before
// it. Only one goroutine at a time may use a Queue.
type Queue[T any] struct {
	Limits

	// Dropped receives each item that leaves the queue because of a limit, its key or
	// the time. It must not use the queue.
	Dropped func(*Item[T], Reason)

	first, last *Item[T]
	count       int // the number of items that take room
	bytes       int // the sum of their sizes
	keys        map[string]*Item[T]
	expiring    schedule[T]
	cursors     [2]*Cursor[T] // those that follow the queue, or nil
}

// Limits bounds the items that take room.
type Limits struct {
	Messages int // how many
	Bytes    int // the sum of their sizes
	Full     Policy
}

// Policy decides what happens when there is no room for an item. Its values are those of
// reconnect.OutboxOverflow.
type Policy uint8

// The policies.
const (
	Refuse     Policy = iota // Add fails
	DropOldest               // Add drops the oldest until there is room
	ReplaceKey               // Add drops the item with the same key; if there is none, Add fails
)

// Reason says why an item was dropped.
type Reason uint8

// The reasons.
const (
	Displaced Reason = iota // by a newer item, because there was no room
	Replaced                // by a newer item with the same key
	Expired
)

// FullError is the error of Add when there is no room.
type FullError struct {
	Messages, Bytes int // the messages that take room, and their bytes; 0 if Limit is not 0
	Size            int // the bytes of the item that Add refused
	Limit           int // Limits.Bytes if the item alone is larger than that; else 0
}

func (e *FullError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("a message of %d bytes is larger than the limit of %d", e.Size, e.Limit)
	}
	return fmt.Sprintf("%d messages of %d bytes wait", e.Messages, e.Bytes)
}

// Add puts an item at the end, or returns a [*FullError]. If there is no room, it drops all
// expired items before it applies the policy.
func (q *Queue[T]) Add(item *Item[T], now time.Time) error {
	if !item.Free {
		if err := q.makeRoom(item, now); err != nil {
			return err
		}
	}
	item.prev = q.last
	if q.last == nil {
		q.first = item
	} else {
		q.last.next = item
	}
	q.last = item
	q.added(item)
	return nil
}

// makeRoom drops items until there is room for item. If makeRoom returns an error, it has dropped no items but
// expired ones.
func (q *Queue[T]) makeRoom(item *Item[T], now time.Time) error {
	if item.Size > q.Bytes {
		return &FullError{Size: item.Size, Limit: q.Bytes}
	}
	old := q.keys[item.Key] // nil unless the policy is ReplaceKey
	fits := q.fits(item, old)
	if !fits {
		q.Expire(now)
		old = q.keys[item.Key]
		fits = q.fits(item, old)
	}
	if !fits && q.Full != DropOldest {
		return &FullError{Messages: q.count, Bytes: q.bytes, Size: item.Size}
	}
	for ; !fits; fits = q.fits(item, nil) {
		q.drop(q.oldest(), Displaced)
	}
	if old != nil {
		q.drop(old, Replaced)
	}
	return nil
}

// fits reports whether there would be room for item if old were gone.
func (q *Queue[T]) fits(item, old *Item[T]) bool {
	count, bytes := q.count, q.bytes
	if old != nil {
		count, bytes = count-1, bytes-old.Size
	}
	return count < q.Messages && item.Size <= q.Bytes-bytes
}

// oldest returns the first item that takes room.
func (q *Queue[T]) oldest() *Item[T] {
	item := q.first
	for item != nil && item.Free {
		item = item.next
	}
	return item
}

// Next returns the first item that may go, nil if there is none. It drops those after c and before
// the item that have expired. The caller may remove the item. c may be nil.
func (q *Queue[T]) Next(now time.Time, c *Cursor[T], may func(*Item[T]) bool) *Item[T] {
	item := q.first
	if c != nil && c.passed != nil {
		item = c.passed.next
	}
	for item != nil {
		next := item.next
		switch {
		case item.expired(now):
			q.drop(item, Expired)
		case may(item):
			return item
		default:
			c.pass(item)
		}
		item = next
	}
	return nil
}

// Peek is like Next, but drops nothing.
func (q *Queue[T]) Peek(c *Cursor[T], may func(*Item[T]) bool) *Item[T] {
	item := q.first
	if c != nil && c.passed != nil {
		item = c.passed.next
	}
	for ; item != nil && !may(item); item = item.next {
		c.pass(item)
	}
	return item
}

// PutBack puts an item that was removed at the head again, whatever the limits. It
// drops the item if a newer one with its key is queued.
func (q *Queue[T]) PutBack(item *Item[T]) {
	if item.Key != "" && q.keys[item.Key] != nil {
		q.Dropped(item, Replaced)
		return
	}
	item.next = q.first
	if q.first == nil {
		q.last = item
	} else {
		q.first.prev = item
	}
	q.first = item
	for _, c := range q.cursors {
		if c != nil {
			c.passed = nil // because the item may go, perhaps
		}
	}
	q.added(item)
}

// added counts an item that has just been linked, and enters it by key and deadline.
func (q *Queue[T]) added(item *Item[T]) {
	item.queued = true
	if !item.Free {
		q.count++
		q.bytes += item.Size
	}
	if item.Key != "" && q.Full == ReplaceKey {
		if q.keys == nil {
			q.keys = make(map[string]*Item[T])
		}
		q.keys[item.Key] = item
	}
	if !item.Expires.IsZero() {
		q.expiring.add(item)
	}
}

// Remove takes an item out if it is queued.
func (q *Queue[T]) Remove(item *Item[T]) {
	if !item.queued {
		return
	}
	for _, c := range q.cursors {
		if c != nil && c.passed == item {
			c.passed = item.prev
		}
	}
	if item.prev == nil {
		q.first = item.next
	} else {
		item.prev.next = item.next
	}
	if item.next == nil {
		q.last = item.prev
	} else {
		item.next.prev = item.prev
	}
	item.prev, item.next, item.queued = nil, nil, false
	if !item.Free {
		q.count--
		q.bytes -= item.Size
	}
	if item.Key != "" && q.keys[item.Key] == item {
		delete(q.keys, item.Key)
	}
	if item.rank != 0 {
		q.expiring.remove(item)
	}
}

func (q *Queue[T]) drop(item *Item[T], why Reason) {
	q.Remove(item)
	q.Dropped(item, why)
}

// Expire drops all expired items, the earliest first.
func (q *Queue[T]) Expire(now time.Time) {
	for item := q.expiring.next(); item != nil && item.expired(now); item = q.expiring.next() {
		q.drop(item, Expired)
	}
}

// Earliest returns when the next item expires, or the zero time if none does.
func (q *Queue[T]) Earliest() time.Time {
	item := q.expiring.next()
	if item == nil {
		return time.Time{}
	}
	return item.Expires
}

// First returns the item at the head, or nil.
func (q *Queue[T]) First() *Item[T] { return q.first }

// All returns the items in order. The loop may remove the item that it has just got, and
// no other.
func (q *Queue[T]) All() iter.Seq[*Item[T]] {
	return func(yield func(*Item[T]) bool) {
		for item := q.first; item != nil; {
			next := item.next
			if !yield(item) {
				return
			}
			item = next
		}
	}
}

// Size returns how many items take room and the sum of their sizes.
func (q *Queue[T]) Size() (messages, bytes int) { return q.count, q.bytes }

// Item is one entry. Its exported fields must not change while it is queued.
type Item[T any] struct {
	Value   T
	Size    int       // counted against Limits.Bytes
	Free    bool      // the item takes no room: it counts against neither limit and is never displaced
	Key     string    // for ReplaceKey, or empty
	Expires time.Time // when Next drops the item; zero means never

	prev, next     *Item[T]
	earlier, later *Item[T] // its neighbours in the list of items that expire
	rank           int      // index in the heap of items that expire, from 1, or inList, or 0
	queued         bool
}

// Queued reports whether the item is in a queue.
func (i *Item[T]) Queued() bool { return i.queued }

// expired reports whether the item has expired at now.
func (i *Item[T]) expired(now time.Time) bool { return !i.Expires.IsZero() && !now.Before(i.Expires) }

// deadlines is a heap of items by the time at which they expire.
type deadlines[T any] []*Item[T]

func (d deadlines[T]) Len() int           { return len(d) }
func (d deadlines[T]) Less(i, j int) bool { return d[i].Expires.Before(d[j].Expires) }

func (d deadlines[T]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].rank, d[j].rank = i+1, j+1
}

// Push implements [heap.Interface].
func (d *deadlines[T]) Push(x any) {
	item := x.(*Item[T])
	*d = append(*d, item)
	item.rank = len(*d)
}

// Pop implements [heap.Interface].
func (d *deadlines[T]) Pop() any {
	last := len(*d) - 1
	item := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	item.rank = 0
	if last == 0 {
		*d = nil // an empty queue holds no memory
	}
	return item
}

// Cursor is a position in a [Queue]: no item up to it may go. [Queue.Next] and [Queue.Peek] begin after
// the position and advance it, so that they look at an item that may not go once, and not in each call.
// A Cursor has an effect between Follow and Leave, and all calls with it must have the same function may,
// which must not return true for an item after it has returned false.
type Cursor[T any] struct {
	passed    *Item[T] // the last item up to the position; nil at the head
	following bool
}

// Follow lets q keep c up to date. At most two Cursors may follow a Queue at a time.
func (q *Queue[T]) Follow(c *Cursor[T]) {
	c.following = true
	if q.cursors[0] == nil {
		q.cursors[0] = c
	} else {
		q.cursors[1] = c
	}
}

// Leave ends what Follow began, if it has begun.
func (q *Queue[T]) Leave(c *Cursor[T]) {
	for i := range q.cursors {
		if q.cursors[i] == c {
			q.cursors[i] = nil
		}
	}
	*c = Cursor[T]{}
}

// pass advances c, which may be nil, to an item.
func (c *Cursor[T]) pass(item *Item[T]) {
	if c != nil && c.following {
		c.passed = item
	}
}

// schedule finds the item that expires first. Items that are added in the order in which
// they expire form a list, where adding and removing takes constant time: those that may
// wait equally long do. The others are in a heap.
type schedule[T any] struct {
	first, last *Item[T]
	others      deadlines[T]
}

// inList is the rank of an item in the list.
const inList = -1

func (s *schedule[T]) add(item *Item[T]) {
	switch {
	case s.last == nil:
		s.first = item
	case item.Expires.Before(s.last.Expires):
		heap.Push(&s.others, item)
		return
	default:
		item.earlier, s.last.later = s.last, item
	}
	s.last, item.rank = item, inList
}

// remove takes out an item that was added.
func (s *schedule[T]) remove(item *Item[T]) {
	if item.rank != inList {
		heap.Remove(&s.others, item.rank-1)
		return
	}
	if item.earlier == nil {
		s.first = item.later
	} else {
		item.earlier.later = item.later
	}
	if item.later == nil {
		s.last = item.earlier
	} else {
		item.later.earlier = item.earlier
	}
	item.earlier, item.later, item.rank = nil, nil, 0
}

// next returns the item that expires first, or nil.
func (s *schedule[T]) next() *Item[T] {
	if len(s.others) > 0 && (s.first == nil || s.others[0].Expires.Before(s.first.Expires)) {
		return s.others[0]
	}
	return s.first
}
