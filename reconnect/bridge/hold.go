package bridge

import (
	"cmp"
	"slices"
)

// hold is what waits for the past of one stream, in the order of the numbers. Items without a
// number come first, in the order in which they came.
type hold[K comparable, T any] struct{ list []heldItem[K, T] }

// heldItem is an item that waits.
type heldItem[K comparable, T any] struct {
	item    Item[K, T]
	session uint64 // 0: from a fetch
	size    int    // of its message
}

// add adds an item, and reports false if its numbers are there already.
func (h *hold[K, T]) add(n heldItem[K, T]) bool {
	i := len(h.list)
	if i > 0 && h.list[i-1].item.Last > 0 && n.item.first() <= h.list[i-1].item.first() {
		i, _ = slices.BinarySearchFunc(h.list, n.item.first(), func(e heldItem[K, T], first uint64) int {
			return cmp.Compare(e.item.first(), first)
		})
	}
	if n.item.Last > 0 {
		if i > 0 && h.list[i-1].item.Last >= n.item.Last {
			return false
		}
		if i < len(h.list) && h.list[i].item.first() == n.item.first() && h.list[i].item.Last >= n.item.Last {
			return false
		}
	}
	h.list = slices.Insert(h.list, i, n)
	return true
}

// first returns the first number, or 0 if there is none.
func (h *hold[K, T]) first() uint64 {
	for i := range h.list {
		if n := h.list[i].item.first(); n > 0 {
			return n
		}
	}
	return 0
}

// pop takes the first item.
func (h *hold[K, T]) pop() heldItem[K, T] {
	n := h.list[0]
	h.list[0] = heldItem[K, T]{} // so that it is not kept
	if h.list = h.list[1:]; len(h.list) == 0 {
		h.list = nil
	}
	return n
}

// hold holds an item, and reports whether it is there now and was not before. A live item that
// finds no room takes the room of older items of its stream.
func (b *Bridge[K, T]) hold(s *stream[K, T], n heldItem[K, T]) bool {
	if n.item.Last > 0 {
		s.epoch = n.item.Epoch
	}
	live := n.session > 0
	for live && b.full(n.size) && len(s.hold.list) > 0 {
		b.dropped(s, b.pop(s))
	}
	if b.full(n.size) {
		if live {
			b.dropped(s, n)
		}
		return false
	}
	if !s.hold.add(n) {
		return false
	}
	b.held.messages++
	b.held.bytes += n.size
	return true
}

// full reports whether there is no room for a message of a size.
func (b *Bridge[K, T]) full(size int) bool {
	return b.held.messages >= b.o.Messages || b.held.messages > 0 && b.held.bytes+size > b.o.Bytes
}

// pop takes the first of what is held of s.
func (b *Bridge[K, T]) pop(s *stream[K, T]) heldItem[K, T] {
	n := s.hold.pop()
	b.held.messages--
	b.held.bytes -= n.size
	return n
}

// drop drops everything that is held of s.
func (b *Bridge[K, T]) drop(s *stream[K, T]) {
	for len(s.hold.list) > 0 {
		b.pop(s)
	}
}

// dropped notes that an item was not held, or no longer. It has to be fetched: if it has a
// number, the pages go on until they have it; if not, another fetch is needed.
func (b *Bridge[K, T]) dropped(s *stream[K, T], n heldItem[K, T]) {
	if n.session > 0 {
		b.stats.Dropped++
	}
	if n.item.Last == 0 {
		s.round++
	}
}
