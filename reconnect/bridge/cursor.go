package bridge

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Cursor is a place in a numbered stream: everything up to Offset has come, and nothing is
// missing before it. It is not the largest number that was seen. While a number is missing the
// Cursor stays before the gap, and remembers what came after it.
//
//	var at bridge.Cursor // of a reader that has nothing yet
//	switch at.Take(m.Epoch, m.Number) {
//	case bridge.PlacementNext:
//		apply(m) // and store at.At() with the effect
//	case bridge.PlacementSeen:
//		// a duplicate
//	case bridge.PlacementGap, bridge.PlacementBeyond:
//		first, last, _ := at.Missing() // fetch these
//	case bridge.PlacementNewEpoch:
//		at = bridge.Cursor{Epoch: m.Epoch} // the server counts anew
//	}
//
// The zero value is the beginning of a stream whose numbers begin at 1, in an epoch that the first
// number tells. To begin elsewhere, set Epoch and Offset. A Cursor belongs to one goroutine. While
// a gap is open a copy shares what is remembered with its original: use [Cursor.At] to make a
// copy. Two cursors can be compared by == if none of them has a gap.
//
// In order, Take allocates nothing.
type Cursor struct {
	Epoch  string // numbers of different epochs cannot be compared; may be empty
	Offset uint64 // the last number up to which everything has come; 0: nothing has

	ahead *ahead // what came after a gap; nil: no gap is open
}

// ahead is what came after a gap.
type ahead struct {
	spans []span // in order; there is a gap before each
}

// span is the numbers from first to last.
type span struct{ first, last uint64 }

// maxAhead is how many spans a Cursor remembers.
const maxAhead = 64

// Placement says what a number means to a [Cursor].
type Placement uint8

// The placements.
const (
	PlacementNext     Placement = iota // it was due; the Cursor has moved over it, and over what it remembers after it
	PlacementSeen                      // it has come before
	PlacementGap                       // numbers are missing before it; it is remembered, and is Seen from now on
	PlacementBeyond                    // like Gap, but it is not remembered, because there are 64 gaps: it has to come again
	PlacementNewEpoch                  // its epoch is another one; the Cursor has not changed
)

func (p Placement) String() string {
	if int(p) < len(placements) {
		return placements[p]
	}
	return fmt.Sprintf("Placement(%d)", uint8(p))
}

var placements = [...]string{"next", "seen", "gap", "beyond", "new epoch"}

// Take says what the number means, and moves the Cursor over it if nothing is missing before
// it. A zero Cursor takes the epoch over.
func (c *Cursor) Take(epoch string, number uint64) Placement {
	return c.TakeRange(epoch, number, number)
}

// TakeRange is [Cursor.Take] for a message that stands for all numbers from first to last, such
// as an update of an order book that joins several. It is Next if the number that is due is
// one of them, even if some before that have come already. If first is above last,
// the message stands for last alone.
func (c *Cursor) TakeRange(epoch string, first, last uint64) Placement {
	first = min(first, last)
	step := c.look(epoch, first, last)
	switch step {
	case PlacementNext:
		c.advance(epoch, last)
	case PlacementGap:
		return c.remember(epoch, span{first, last})
	}
	return step
}

// look says what the numbers mean, and changes nothing.
func (c *Cursor) look(epoch string, first, last uint64) Placement {
	switch {
	case epoch != c.Epoch && *c != (Cursor{}):
		return PlacementNewEpoch
	case last <= c.Offset:
		return PlacementSeen
	case first <= c.Offset+1: // no overflow, because Offset is below last
		return PlacementNext
	case c.ahead.covers(first, last):
		return PlacementSeen
	}
	return PlacementGap
}

// advance moves the Cursor to last, and over what is remembered right after it.
func (c *Cursor) advance(epoch string, last uint64) {
	c.Epoch, c.Offset = epoch, last
	if c.ahead == nil {
		return
	}
	n := 0
	for _, s := range c.ahead.spans {
		if s.first-1 > c.Offset {
			break
		}
		c.Offset = max(c.Offset, s.last)
		n++
	}
	c.ahead.spans = slices.Delete(c.ahead.spans, 0, n)
	if len(c.ahead.spans) == 0 {
		c.ahead = nil
	}
}

// remember notes numbers that came after a gap.
func (c *Cursor) remember(epoch string, s span) Placement {
	if c.ahead == nil {
		c.ahead = new(ahead)
	}
	if !c.ahead.add(s) {
		return PlacementBeyond
	}
	c.Epoch = epoch
	return PlacementGap
}

// covers reports whether all the numbers are remembered.
func (a *ahead) covers(first, last uint64) bool {
	if a == nil {
		return false
	}
	i, _ := a.find(first)
	return i < len(a.spans) && a.spans[i].first <= first && last <= a.spans[i].last
}

// find returns the index of the first span that ends at number or later.
func (a *ahead) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(a.spans, number, func(s span, n uint64) int {
		if s.last < n {
			return -1
		}
		return 1
	})
}

// add joins s with the spans that it touches. It reports false if there is no room.
func (a *ahead) add(s span) bool {
	from, _ := a.find(s.first - 1) // s.first is at least 2, because a gap is before it
	to := from
	for to < len(a.spans) && a.spans[to].first-1 <= s.last {
		s.first, s.last = min(s.first, a.spans[to].first), max(s.last, a.spans[to].last)
		to++
	}
	if from == to && len(a.spans) >= maxAhead {
		return false
	}
	a.spans = slices.Replace(a.spans, from, to, s)
	return true
}

// Missing returns the numbers of the first gap. It returns false if nothing is known to be
// missing.
func (c *Cursor) Missing() (first, last uint64, ok bool) {
	if c.ahead == nil {
		return 0, 0, false
	}
	return c.Offset + 1, c.ahead.spans[0].first - 1, true
}

// At returns the place alone, without what came after a gap. That is what to store: a reader
// that begins there again gets everything after the gap again, too.
func (c Cursor) At() Cursor { return Cursor{Epoch: c.Epoch, Offset: c.Offset} }

// String returns the text form: see [Cursor.MarshalText].
func (c Cursor) String() string {
	text := strconv.FormatUint(c.Offset, 10)
	if c.Epoch != "" {
		text += "@" + url.QueryEscape(c.Epoch)
	}
	return text
}

// MarshalText returns the place as "42@epoch", or "42" if the epoch is empty. The epoch is
// escaped as in the query of a URL, so that the text has printable ASCII characters only, and
// no space. What came after a gap is not part of it. The error is nil.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText sets c to the place that MarshalText has written. After an error c has not
// changed.
func (c *Cursor) UnmarshalText(text []byte) error {
	offset, escaped, _ := strings.Cut(string(text), "@")
	n, err := strconv.ParseUint(offset, 10, 64)
	if err != nil {
		return errBadCursor // without the text, which may be anything
	}
	epoch, err := url.QueryUnescape(escaped)
	if err != nil {
		return errBadCursor
	}
	*c = Cursor{Epoch: epoch, Offset: n}
	return nil
}

var errBadCursor = errors.New(`bridge: a cursor is written as "42@epoch" or "42"`)
