package bridge

import (
	"errors"
	"fmt"

	"github.com/redial-go/redial/reconnect"
)

// Item is one thing in a stream: what [Options].Parse makes of a message, and what Past
// and Snapshot return.
type Item[K comparable, T any] struct {
	Key K // which stream; Past and Snapshot need not set it

	// Epoch says what the numbers count from. If the numbers begin anew with each connection,
	// make it of [reconnect.Message].Session. Default: one epoch for all time.
	Epoch string

	// Last is the number of the item. 0: it has none. First is the first of its numbers, if
	// it stands for several, as in [Cursor.TakeRange]. Default: Last.
	First, Last uint64

	// Snapshot says that Value replaces everything before it, Last included. Live messages
	// can be snapshots, too. Default: it is one change.
	Snapshot bool

	Value T // what the user makes of it; the Bridge does not look at it
}

// first returns the first number.
func (it *Item[K, T]) first() uint64 {
	if it.First == 0 || it.First > it.Last {
		return it.Last
	}
	return it.First
}

// Event is what the reader of a [Bridge] gets. Those of one stream are in order.
type Event[K comparable, T any] struct {
	Kind Kind

	// Item is the item of a Live, Past or Snapshot. Of the other kinds Key is the stream, and
	// the numbers are those that are missing (Stale; Last is 0 if it is not known), that will
	// never come (Lost; the same), or up to which the stream is complete (Healed, in Last).
	Item[K, T]

	// Session is the number of the session by which the item came. 0: by a fetch.
	Session uint64

	// Err says why the stream is stale, or why numbers are lost. Of Other it is the
	// [*reconnect.Seam], or ErrOnlySeen, or nil for a message.
	Err error

	// Message is that of Other, which is not an item. It is empty for a seam.
	Message reconnect.Message
}

// Cursor returns the place after e, if e is Live, Past, Snapshot, Lost or Healed. Store it together
// with the effect of e. It returns false if e moves nothing: an item without a number does not.
func (e *Event[K, T]) Cursor() (Cursor, bool) {
	if e.Last == 0 || e.Kind == EventStale || e.Kind == EventOther {
		return Cursor{}, false
	}
	return Cursor{Epoch: e.Epoch, Offset: e.Last}, true
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds.
const (
	EventLive     Kind = iota // the next item, from the connection
	EventPast                 // the next item, from a fetch of the past
	EventSnapshot             // it replaces everything before it
	EventStale                // from here on something is missing, until Healed: what was built is not to be trusted
	EventHealed               // nothing is missing any more, except what was reported as Lost; a stream that begins with a snapshot has neither Stale nor Healed
	EventLost                 // some numbers will never come: the server has them no longer
	EventOther                // belongs to no stream: a message that is no item, or a seam
)

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

var kinds = [...]string{"live", "past", "snapshot", "stale", "healed", "lost", "other"}

// ErrTooOld is what [Options].Past returns, or wraps, if the server does not go back as far
// as the cursor. The stream then begins anew with a snapshot. Without Snapshot and Ask what is
// missing is Lost.
var ErrTooOld = errors.New("the server does not go back that far")

// These are causes of [EventStale] and [EventLost] events. Others are a [*reconnect.Seam], the errors
// of Past and Snapshot, and errors whose text says that Refetch was called, or that the past does not
// have what is missing.
var (
	ErrBegins   = errors.New("the stream begins")                  // its past or a snapshot is to come first
	ErrGap      = errors.New("numbers are missing")                // inside a session; First and Last of the Event say which
	ErrNewEpoch = errors.New("the server has begun to count anew") // how much is missing is not known
)

// ErrOnlySeen is the error of an event of the kind [EventOther] that has a Key: a thousand live
// messages in a row had numbers that had come before. The server may have begun to count anew,
// without telling an epoch. If so, call Forget.
var ErrOnlySeen = errors.New("a thousand messages had numbers that had come before")

// gapError is an ErrGap that says which numbers are missing.
type gapError struct{ first, last uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("numbers %d to %d are missing", e.first, e.last)
}

func (e *gapError) Is(target error) bool { return target == ErrGap }
