package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Options are the options of [New]. Parse must be set. Without Past, Snapshot and Ask a Bridge only
// reports which items are missing.
type Options[K comparable, T any] struct {
	// Parse returns the item in a message, or false if m is not an item but, for instance, an
	// answer; m is then an EventOther. Parse is called in the goroutine that ranges over Events. It
	// may keep m.Data.
	Parse func(m reconnect.Message) (Item[K, T], bool)

	// Wanted reports whether the reader still wants a stream, for instance whether a
	// subscription.Set has its key. A stream that is not wanted is forgotten, with its fetches, and
	// its message is an EventOther. Wanted is called with each message, in the goroutine that ranges
	// over Events, and before each fetch, in the goroutine of the fetch. Default: every stream is
	// wanted.
	Wanted func(key K) bool

	// Past returns a page of the items of a stream that come after r.After, the oldest first. The
	// page may be short. Past is called for page after page until one of these:
	//
	//   - the pages meet the live messages
	//   - a page is empty, or has no new item
	//   - Past returns [io.EOF], with or without items
	//
	// An item whose Last is 0 is an error. An empty page says that nothing is missing. If the server
	// has only numbers up to r.After.Offset because it counts anew without an epoch, return
	// [ErrTooOld]; otherwise the stream counts as complete, and its new messages as duplicates.
	//
	// An error is retried after a wait, with two exceptions: after [ErrTooOld], and after an error
	// whose verdict is [backoff.ClassStop] (see [backoff.Permanent]), the past counts as gone. No
	// error ends the connection.
	//
	// Each call of Past, Snapshot and Ask runs in a separate goroutine. It must return when its
	// context ends: after Timeout, or when the loop over Events ends.
	Past func(ctx context.Context, r Request[K]) ([]Item[K, T], error)

	// Snapshot returns the present state of a stream, with the Last (and Epoch) of the last change
	// in it. Key and Snapshot of the Item need not be set. Snapshot is called when:
	//
	//   - a stream begins without a cursor
	//   - the past is gone
	//   - a new epoch begins
	//   - there is a gap, and no Past
	//
	// An error is retried, unless its verdict is ClassStop, or Policy gives up. Then what is missing is
	// lost, with one exception: if the stream has changed to a new epoch, and Past is set, Past is
	// called for that epoch from its beginning.
	Snapshot func(ctx context.Context, key K) (Item[K, T], error)

	// Ask asks the server to send a snapshot in the stream, for instance by subscribing once more.
	// Set Ask or Snapshot, not both. Ask returns when the request is written. If no item with
	// Snapshot set comes within Timeout, Ask is called again. After an error Ask is called again, as
	// Snapshot is, after the wait of Policy and the time for which the server has asked, whatever comes
	// meanwhile. After a seam the new subscription is expected to bring a snapshot: Ask is called only
	// if none comes within Timeout after the first message of the stream.
	Ask func(ctx context.Context, key K) error

	// Messages and Bytes bound the live messages that are held while a past is fetched, for all
	// streams together. If there is no room, the oldest held messages of the same stream are
	// dropped, and fetched later. Default: 4096 messages; 16 MiB of data. Negative: an error.
	Messages, Bytes int

	// AwaitSubscribed says that a session is ready before the streams are subscribed, as with
	// package subscription. A fetch before the subscription would miss the items between the two. So
	// after a seam, and after Follow, a stream is fetched only after one of these:
	//
	//   - a live message of the stream
	//   - a call of [Bridge.Refetch] for the stream, such as after a Wait of the subscription.Set has
	//     returned nil for a key that was added
	//   - the mark of [reconnect.Options].MarkRefetch, for all streams
	//
	// If the keys are Essential in the Set, a ready session has their subscriptions, and
	// AwaitSubscribed is not needed. The package documentation has a table. Default: a stream is
	// fetched as soon as a session is ready.
	AwaitSubscribed bool

	// Fetches is how many calls of Past, Snapshot and Ask may run at once, for all streams together.
	// Default: 4. Negative: an error.
	Fetches int

	// Timeout is the limit on one call of Past, Snapshot or Ask. Default: 10 s. Negative: an
	// error.
	Timeout time.Duration

	// Patience is how long the past may lack numbers that live messages have shown to exist, and how
	// long a snapshot may be older than the stream, because many servers store a message later than
	// they send it. After Patience the numbers count as gone, and the snapshot is taken. Default:
	// 10 s. Negative: no patience.
	Patience time.Duration

	// Policy says how long to wait after a failed call. Policy is called in the goroutine that ranges
	// over Events. Default: [backoff.Default].
	Policy backoff.Policy

	// OnRetry is called after a failed call for a stream, with the wait before the next call. OnRetry
	// is called in the goroutine that ranges over Events. Default: none.
	OnRetry func(key K, err error, wait time.Duration)

	// Streams is the limit on the number of streams, because their keys come from the server. The
	// message of a stream beyond the limit is an EventOther. Default: 65536. Negative: an error.
	Streams int
}

// Request says which items [Options].Past has to return.
type Request[K comparable] struct {
	Key K

	// After is the place up to which the stream is complete: return the items after it.
	After Cursor

	// Before is the first number after the gap, which is held already. A server whose pages go
	// backwards from the newest needs Before; others may ignore it. 0: not known.
	Before uint64
}

func (o *Options[K, T]) withDefaults() (d Options[K, T], err error) {
	if o == nil || o.Parse == nil {
		return d, errors.New("bridge: Options.Parse is missing")
	}
	d = *o
	for name, n := range map[string]int{"Messages": d.Messages, "Bytes": d.Bytes, "Fetches": d.Fetches, "Streams": d.Streams} {
		if n < 0 {
			return d, fmt.Errorf("bridge: Options.%s: %d is negative", name, n)
		}
	}
	switch {
	case d.Timeout < 0:
		return d, fmt.Errorf("bridge: Options.Timeout: %v is negative", d.Timeout)
	case d.Snapshot != nil && d.Ask != nil:
		return d, errors.New("bridge: Options.Snapshot and Ask: set one of them: Snapshot returns a snapshot, Ask has it sent in the stream")
	}
	d.Messages, d.Bytes = cmp.Or(d.Messages, 4096), cmp.Or(d.Bytes, 16<<20)
	d.Fetches, d.Streams = cmp.Or(d.Fetches, 4), cmp.Or(d.Streams, 1<<16)
	d.Timeout = cmp.Or(d.Timeout, 10*time.Second)
	d.Patience = max(cmp.Or(d.Patience, 10*time.Second), 0)
	d.Policy = cmp.Or(d.Policy, backoff.Default())
	return d, nil
}
