package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// Options are the options of [New]. Parse must be set, and at least one of Past,
// Snapshot and Ask should be: without them a Bridge can only tell what is missing.
type Options[K comparable, T any] struct {
	// Parse returns the item in a message, or false if it is something else, such as an
	// answer: that is passed on as an event of the kind Other. It is called in the goroutine
	// that ranges over Events. It may keep m.Data.
	Parse func(m reconnect.Message) (Item[K, T], bool)

	// Wanted reports whether the reader still wants a stream, such as whether it is in a
	// subscription.Set. The message of one that is not wanted is passed on as Other, and the
	// stream is forgotten, with the fetches for it. It is called with each message, and before
	// each fetch, in the goroutine of that. Default: all are wanted.
	Wanted func(key K) bool

	// Past returns items of a stream that come after r.After, the oldest first: a page, as
	// many as the server likes to give. It is called again, with what it has brought taken into
	// account, until the pages meet the live messages, or there is nothing more: if it returns no
	// items that are new, or [io.EOF] together with items. An item whose Last is 0 is
	// an error.
	//
	// So an empty page says that nothing is missing. A server that counts anew after a restart,
	// and tells no epoch, has only numbers before r.After then: return [ErrTooOld] in that case,
	// or the stream counts as complete, and its new messages as seen.
	//
	// An error is retried after a wait. It never ends the connection. These are special:
	// [ErrTooOld], and one whose verdict is [backoff.ClassStop], such as that of
	// [backoff.Permanent], mean that there is no such past.
	//
	// Past, Snapshot and Ask are called in goroutines of their own. They must return when
	// their context ends, which is after Timeout, or when the loop over Events ends.
	Past func(ctx context.Context, r Request[K]) ([]Item[K, T], error)

	// Snapshot returns the present state of a stream, and in Last (and Epoch) the number of the
	// last change in it. It is called for a stream that begins without a cursor, if the past is
	// too old, if a new epoch begins, and for every gap if there is no Past. It need set neither
	// Key nor Snapshot of the item. An error is retried, except one whose verdict is ClassStop.
	Snapshot func(ctx context.Context, key K) (Item[K, T], error)

	// Ask asks the server to send a snapshot in the stream: for instance it subscribes once more.
	// It takes the place of Snapshot. It returns when the request is written. If no item with
	// Snapshot set has come within Timeout, it is called again after a wait. After a seam a new
	// subscription is expected to bring a snapshot by itself: Ask is called only if there is none
	// within Timeout after the first message of the stream.
	Ask func(ctx context.Context, key K) error

	// Messages and Bytes bound what is held of live messages, of all streams together, while
	// a past is fetched. If that is not enough, the oldest held messages of the same stream are
	// dropped. Nothing is lost by that, because they are fetched: the pages have to go further
	// until they meet what is held, and a snapshot has to be newer. Default: 4096 messages;
	// 16 MiB of their data. Negative: an error.
	Messages, Bytes int

	// AwaitSubscribed says that a session is ready before the streams are subscribed, as with
	// package subscription. After a seam a stream is then fetched only when [Bridge.Refetch] was
	// called for it, or a live message of it has come, because what the server sends between a
	// fetch and the subscription would be missing. The mark of [reconnect.Options].MarkRefetch stands
	// for a Refetch of all streams that wait, when a subscription.Set has all of them. To fetch each
	// stream as soon as it is subscribed, call Refetch in the Events of the Set, for the keys of an event of the kind Held, with its session. Those also
	// come when the next session of a rotation is subscribed, and each stream is stale for a
	// moment then. It is not needed if the keys are Essential there, because a session that is
	// ready has them then, except those that were refused. Default: a stream is fetched as soon as
	// a session is ready.
	AwaitSubscribed bool

	// Fetches is how many calls of Past, Snapshot and Ask run at once, for all streams together.
	// Default: 4. Negative: an error.
	Fetches int

	// Pace limits how many of these calls begin in any interval. Default: no limit.
	Pace budget.Window

	// Timeout is the limit on one call of Past, Snapshot or Ask. Default: 10 s. Negative: an
	// error.
	Timeout time.Duration

	// Patience is how long the past may lack numbers that live messages have shown to exist,
	// because many servers store a message a little later than they send it; and how long a
	// snapshot may be older than the stream. After that the numbers are treated as too old, and
	// the snapshot is believed. Default: 10 s. Negative: none.
	Patience time.Duration

	// Policy says how long to wait after a call that has failed. It is called in the goroutine
	// that ranges over Events. Default: [backoff.Default].
	Policy backoff.Policy

	// OnRetry is called when a call for a stream has failed, with the wait before the next
	// one. It is called in the goroutine that ranges over Events. Default: nothing.
	OnRetry func(key K, err error, wait time.Duration)

	// Streams is how many streams there may be, because their keys come from the server. The
	// messages of more are passed on as Other. Default: 65536. Negative: an error.
	Streams int
}

// Request is what [Options].Past is to return.
type Request[K comparable] struct {
	Key K

	// After is the place up to which the stream is complete: return what comes after it.
	After Cursor

	// Before is the number before which something is missing, because this and what follows is
	// there already. A server whose pages go backwards from the newest needs it; others may ignore
	// it. 0: not known.
	Before uint64
}

func (o *Options[K, T]) withDefaults() (Options[K, T], error) {
	if o == nil {
		return Options[K, T]{}, errors.New("bridge: Options.Parse is missing")
	}
	d := *o
	if err := d.validate(); err != nil {
		return d, err
	}
	d.Messages = orDefault(d.Messages, 4096)
	d.Bytes = orDefault(d.Bytes, 16<<20)
	d.Fetches = orDefault(d.Fetches, 4)
	d.Streams = orDefault(d.Streams, 1<<16)
	d.Timeout = orDefault(d.Timeout, 10*time.Second)
	d.Patience = max(orDefault(d.Patience, 10*time.Second), 0)
	if d.Policy == nil {
		d.Policy = backoff.Default()
	}
	return d, nil
}

func (o *Options[K, T]) validate() error {
	for name, n := range map[string]int{"Messages": o.Messages, "Bytes": o.Bytes, "Fetches": o.Fetches, "Streams": o.Streams} {
		if n < 0 {
			return fmt.Errorf("bridge: Options.%s: %d is negative", name, n)
		}
	}
	switch {
	case o.Parse == nil:
		return errors.New("bridge: Options.Parse is missing")
	case o.Timeout < 0:
		return fmt.Errorf("bridge: Options.Timeout: %v is negative", o.Timeout)
	case o.Snapshot != nil && o.Ask != nil:
		return errors.New("bridge: Options.Snapshot and Ask: either the snapshot is returned, or it comes in the stream")
	}
	if err := o.Pace.Validate(); err != nil {
		return fmt.Errorf("bridge: Options.Pace: %w", err)
	}
	return nil
}

func orDefault[N int | time.Duration](n, d N) N {
	if n == 0 {
		return d
	}
	return n
}
