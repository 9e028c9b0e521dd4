package queue

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

// after returns the first item after c, or the first of all if c is nil.
func (q *Queue[T]) after(c *Cursor[T]) *Item[T] {
	if c == nil || c.passed == nil {
		return q.first
	}
	return c.passed.next
}

// pass advances c, which may be nil, to an item.
func (c *Cursor[T]) pass(item *Item[T]) {
	if c != nil && c.following {
		c.passed = item
	}
}
