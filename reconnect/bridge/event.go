package bridge

import (
	"errors"
	"fmt"

	"github.com/redial-go/redial/reconnect"
)

// Item is one change in a stream, or a snapshot of it. [Options].Parse makes an Item of a message; Past
// and Snapshot return them.
type Item[K comparable, T any] struct {
	Key K // which stream; Past and Snapshot need not set it

	// Epoch names the count to which the numbers belong. If the numbers begin anew with each
	// connection, make Epoch of [reconnect.Message].Session. Default: one epoch for all time.
	Epoch string

	// Last is the number of the item. 0: the item has none. If the item joins several numbers, as
	// an update of an order book may, First is the first of them. Default of First: Last.
	First, Last uint64

	// Snapshot says that Value replaces every item up to Last. A live message may be a snapshot,
	// too. Default: the item is a change.
	Snapshot bool

	Value T // the content; the Bridge does not look at it
}

// first returns the first number.
func (it *Item[K, T]) first() uint64 {
	if it.First == 0 || it.First > it.Last {
		return it.Last
	}
	return it.First
}

// Event is an event for the reader of a [Bridge]. The events of one stream are in order.
type Event[K comparable, T any] struct {
	Kind Kind

	// Item is the item of EventLive, EventPast and EventSnapshot. For the other kinds Key is the
	// stream, and the numbers are:
	//
	//   - EventStale: the numbers from First to Last are missing. Last is 0 if it is not known.
	//   - EventLost: the numbers from First to Last will never come. Last is 0 if it is not known.
	//   - EventHealed: the stream is complete up to Last.
	Item[K, T]

	// Session is the number of the session that brought the item. 0: a fetch brought it.
	Session uint64

	// Err is the cause of EventStale and EventLost. Of EventOther it is a [*reconnect.Seam],
	// ErrOnlySeen, or nil for a message.
	Err error

	// Message is the message of EventOther. It is empty for a seam.
	Message reconnect.Message
}

// Cursor returns the place after e. Store it together with the effect of e. Cursor returns false if e
// has no place: EventStale, EventOther, and an item without a number.
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
	EventSnapshot             // the item replaces all before it
	EventStale                // items may be missing until EventHealed: do not trust the state
	EventHealed               // only the items of EventLost are missing; a stream that begins with a snapshot has neither EventStale nor EventHealed
	EventLost                 // some numbers will never come, because the server does not have them any more
	EventOther                // a message that is not an item, or a seam
)

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

var kinds = [...]string{"live", "past", "snapshot", "stale", "healed", "lost", "other"}

// ErrTooOld is an error for [Options].Past to return, or to wrap, if the server does not go back as far
// as the cursor. The stream then begins anew with a snapshot. Without Snapshot and Ask the missing items
// are lost ([EventLost]).
var ErrTooOld = errors.New("the server does not go back that far")

// These are causes of [EventStale] and [EventLost]. Other causes are a [*reconnect.Seam], an error of
// Past or Snapshot, a call of Refetch, and a past that cannot be fetched or lacks the missing numbers.
var (
	ErrBegins = errors.New("the stream begins")   // the past or a snapshot comes first
	ErrGap    = errors.New("numbers are missing") // inside a session, from Event.First to Last

	// ErrNewEpoch says that it is not known how many items are missing. As the cause of an EventLost it says that everything is
	// lost from First on: the rest of that epoch, and each epoch between it and that of the next item.
	ErrNewEpoch = errors.New("the server has begun to count anew")
)

// ErrOnlySeen is the error of an [EventOther] with a Key: a thousand live messages of the stream in a row
// had numbers that had come before. Perhaps the server counts anew, and its messages have no epoch. If
// so, call Forget.
var ErrOnlySeen = errors.New("a thousand messages had numbers that had come before")

// gapError is an ErrGap that says which numbers are missing.
type gapError struct{ first, last uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("numbers %d to %d are missing", e.first, e.last)
}

func (e *gapError) Is(target error) bool { return target == ErrGap }
