package bridge

import (
	"errors"
	"fmt"

	"github.com/redial-go/redial/reconnect"
)

// Item is one change in a stream, or a snapshot of it.
type Item[K comparable, T any] struct {
	Key K // stream; Past and Snapshot need not set it

	// Epoch names the count to which the numbers belong. If numbers restart with each connection, derive Epoch
	// from [reconnect.Message].Session. Default: a single epoch.
	Epoch string

	// Last is the number of the item, or 0 if it has none. If the item covers several numbers, as an order book
	// update may, First is the first of them. Default of First: Last.
	First, Last uint64

	// Snapshot says that Value replaces every item up to Last. A live message may be a snapshot, too.
	Snapshot bool

	Value T // content; not inspected by the Bridge
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

	// Item is the item of EventLive, EventPast and EventSnapshot. For the other kinds Key is the stream, and
	// the numbers are:
	//
	//   - EventStale, EventLost: First to Last are missing, or will never come. Last is 0 if unknown.
	//   - EventHealed: the stream is complete up to Last.
	Item[K, T]

	// Session is the number of the session that brought the item, or 0 for a fetch.
	Session uint64

	// Err is the cause of EventStale and EventLost. For EventOther it is a [*reconnect.Seam], ErrOnlySeen, or
	// nil for a message.
	Err error

	// Message is the message of EventOther; empty for a seam.
	Message reconnect.Message
}

// Cursor returns the position after e, to be stored together with the effect of e. It returns false if there is
// none: for EventStale, EventOther, and an item without a number.
func (e *Event[K, T]) Cursor() (Cursor, bool) {
	if e.Last == 0 || e.Kind == EventStale || e.Kind == EventOther {
		return Cursor{}, false
	}
	return Cursor{Epoch: e.Epoch, Offset: e.Last}, true
}

// Kind is the kind of an [Event].
type Kind uint8

// The kinds. A stream that begins with a snapshot has neither EventStale nor EventHealed.
const (
	EventLive     Kind = iota // next item, from the connection
	EventPast                 // next item, from a fetch of the past
	EventSnapshot             // replaces all items before it
	EventStale                // items may be missing until EventHealed: do not trust the state
	EventHealed               // only the items of EventLost are missing
	EventLost                 // some numbers will never come: the server no longer has them
	EventOther                // a message that is not an item, or a seam
)

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

var kinds = [...]string{"live", "past", "snapshot", "stale", "healed", "lost", "other"}

// ErrTooOld is returned or wrapped by [Options].Past if the server does not go back as far as the cursor. The
// stream then restarts with a snapshot. Without Snapshot and Ask the missing items are lost ([EventLost]).
var ErrTooOld = errors.New("the server does not go back that far")

// These are causes of [EventStale] and [EventLost]. Other causes are a [*reconnect.Seam], an error of Past or
// Snapshot, a call of Refetch, and a past that cannot be fetched or lacks the missing numbers.
var (
	ErrBegins = errors.New("the stream begins")   // the past or a snapshot comes first
	ErrGap    = errors.New("numbers are missing") // inside a session, from Event.First to Last

	// ErrNewEpoch means that the number of missing items is unknown. As the cause of an EventLost it means that
	// everything from First on is lost: the rest of that epoch, and all epochs before that of the next item.
	ErrNewEpoch = errors.New("the server has begun to count anew")
)

// ErrOnlySeen is the error of an [EventOther] with a Key: a thousand consecutive live messages of the stream
// had numbers seen before. If the server has restarted its numbers without an epoch, call Forget.
var ErrOnlySeen = errors.New("a thousand messages had numbers that had come before")

// gapError is an ErrGap that says which numbers are missing.
type gapError struct{ first, last uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("numbers %d to %d are missing", e.first, e.last)
}

func (e *gapError) Is(target error) bool { return target == ErrGap }
