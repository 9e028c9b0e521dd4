package venue

import "maps"

// Symbols are the books of every venue.
var Symbols = []string{"ADA-USD", "C-USD", "GO-USD"}

// Levels maps a price in cents to a size.
type Levels map[int]int

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
