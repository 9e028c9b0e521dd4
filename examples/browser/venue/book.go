package venue

import (
	"cmp"
	"maps"
	"slices"
)

// Levels maps a price in cents to a size.
type Levels map[int]int

// Level is a price in cents, and what is offered at it.
type Level struct{ Price, Size int }

// Book is what is offered for one symbol: a snapshot and the updates since. It is not safe for
// concurrent use.
type Book struct {
	Seq        uint64 // of the last message that was applied; 0: none was
	Bids, Asks Levels
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{Bids: Levels{}, Asks: Levels{}} }

// Apply applies the next update. A snapshot is an update of an empty book.
func (b *Book) Apply(m *Message) {
	b.Seq = m.Seq
	b.Bids.merge(m.Bids)
	b.Asks.merge(m.Asks)
}

func (l Levels) merge(changes Levels) {
	for price, size := range changes {
		if size == 0 {
			delete(l, price)
		} else {
			l[price] = size
		}
	}
}

// Clone returns a copy.
func (b *Book) Clone() *Book { return &Book{b.Seq, maps.Clone(b.Bids), maps.Clone(b.Asks)} }

// Best returns the n best levels of each side, the best first.
func (b *Book) Best(n int) (bids, asks []Level) {
	return b.Bids.sorted(n, -1), b.Asks.sorted(n, +1)
}

// sorted returns the first n levels by price, upwards or downwards.
func (l Levels) sorted(n, direction int) []Level {
	all := make([]Level, 0, len(l))
	for price, size := range l {
		all = append(all, Level{price, size})
	}
	slices.SortFunc(all, func(a, b Level) int { return direction * cmp.Compare(a.Price, b.Price) })
	return all[:min(n, len(all))]
}
