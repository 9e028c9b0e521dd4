package bridge

// Cursor is a position in a numbered stream: everything up to Offset has come.
//
//	var at bridge.Cursor // of a reader that has nothing yet
//	switch at.Take(m.Epoch, m.Number) {
//	case bridge.PlacementNext:
//		apply(m) // and store at with the effect
//	case bridge.PlacementSeen:
//		// a duplicate
//	case bridge.PlacementGap:
//		fetch(at, m.Number) // the numbers between them; then take m again
//	case bridge.PlacementNewEpoch:
//		at = bridge.Cursor{Epoch: m.Epoch} // the server has restarted its numbers
//	}
//
// The zero value is the beginning of a stream whose numbers begin at 1; it takes the epoch of the first number.
// To begin elsewhere, set Epoch and Offset. A Cursor is comparable with ==, but not safe for concurrent use.
type Cursor struct {
	Epoch  string // numbers of different epochs cannot be compared; may be empty
	Offset uint64 // number of the last item received without a gap, or 0
}

// Placement is the position of a number relative to a [Cursor].
type Placement uint8

// The placements.
const (
	PlacementNext     Placement = iota // the number was due; the Cursor has moved to it
	PlacementSeen                      // the number has come before
	PlacementGap                       // numbers are missing before it; the Cursor is unchanged
	PlacementNewEpoch                  // the epoch is another one; the Cursor is unchanged
)

// Take returns the placement of number, and moves the Cursor to it if it is the next. It does not allocate.
func (c *Cursor) Take(epoch string, number uint64) Placement {
	p := c.place(epoch, number, number)
	if p == PlacementNext {
		*c = Cursor{epoch, number}
	}
	return p
}

// place says where the numbers from first to last are. They are next if one of them is due.
func (c *Cursor) place(epoch string, first, last uint64) Placement {
	switch {
	case epoch != c.Epoch && *c != (Cursor{}):
		return PlacementNewEpoch
	case last <= c.Offset:
		return PlacementSeen
	case first <= c.Offset+1: // no overflow, because Offset is below last
		return PlacementNext
	}
	return PlacementGap
}
