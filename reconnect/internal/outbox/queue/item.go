package queue

import "time"

// Item is one entry. Its exported fields must not change while it is queued.
type Item[T any] struct {
	Value   T
	Size    int       // counted against Limits.Bytes
	Free    bool      // the item takes no room: it counts against neither limit and is never displaced
	Key     string    // what the item is about, for ReplaceKey; empty: nothing
	Expires time.Time // from then on Next drops the item; zero: never

	prev, next     *Item[T]
	earlier, later *Item[T] // its neighbours in the list of items that expire
	rank           int      // its place in the heap of items that expire, counted from 1, or inList; 0: none
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
