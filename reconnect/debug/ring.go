package debug

// ring keeps the newest items, up to a limit. It takes memory only as it fills.
type ring[T any] struct {
	items []T
	next  int // where the next item goes when the ring is full
}

// add adds an item. When there are limit of them the oldest is dropped.
func (r *ring[T]) add(item T, limit int) {
	if len(r.items) < limit {
		r.items = append(r.items, item)
		return
	}
	r.items[r.next] = item
	r.next = (r.next + 1) % limit
}

// newest returns the item that was added i items before the newest, nil if there is none.
func (r *ring[T]) newest(i int) *T {
	n := len(r.items)
	if i >= n {
		return nil
	}
	return &r.items[(r.next-1-i+2*n)%n]
}

// all returns a copy of the items, the oldest first.
func (r *ring[T]) all() []T {
	return append(append(make([]T, 0, len(r.items)), r.items[r.next:]...), r.items[:r.next]...)
}
