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

// Options are the options of [New]. Parse must be set. Callbacks run in the goroutine that ranges over Events,
// except Past, Snapshot and Ask, and Wanted before a fetch, each of which runs in a new goroutine. Without
// Past, Snapshot and Ask a Bridge only reports which items are missing.
type Options[K comparable, T any] struct {
	// Parse returns the item in a message, or false if m is none; m is then an EventOther. Parse may keep
	// m.Data.
	Parse func(m reconnect.Message) (Item[K, T], bool)

	// Wanted reports whether the reader still wants a stream. An unwanted stream is forgotten, with its
	// fetches, and its message is an EventOther. Wanted is called with each message and before each fetch.
	// Default: all are wanted.
	Wanted func(key K) bool

	// Past returns a page of the items after r.After, the oldest first. The page may be short. Past is called
	// repeatedly until the pages meet the live messages, a page has no new item, or Past returns [io.EOF], with
	// or without items. An item whose Last is 0 is an error. An empty page means that nothing is missing. If
	// the server has only numbers up to r.After.Offset because it restarted them without an epoch, return
	// [ErrTooOld]; otherwise the stream counts as complete, and its new messages as duplicates.
	//
	// An error is retried after a wait, unless it is [ErrTooOld] or its verdict is [backoff.ClassStop] (see
	// [backoff.Permanent]): then the past counts as gone. No error ends the connection.
	//
	// Past, Snapshot and Ask must return when their context is done: after Timeout, or when the loop over
	// Events ends.
	Past func(ctx context.Context, r Request[K]) ([]Item[K, T], error)

	// Snapshot returns the current state of a stream, with the Last (and Epoch) of the last change in it.
	// Item.Snapshot need not be set. Snapshot is called when a stream begins without a cursor, the past is
	// gone, a new epoch begins, or there is a gap and no Past.
	//
	// An error is retried, unless its verdict is ClassStop, or Policy gives up. Then what is missing is lost;
	// but if the stream has a new epoch and Past is set, Past is called for that epoch from its beginning.
	Snapshot func(ctx context.Context, key K) (Item[K, T], error)

	// Ask asks the server to send a snapshot in the stream, for instance by subscribing again, and returns when
	// the request is written. Set either Ask or Snapshot. Ask is called again if no item with Snapshot set
	// comes within Timeout. An error is retried as for Snapshot, after the wait of Policy and the time that the
	// server has asked for, whatever comes meanwhile. After a seam Ask is called only if the new subscription
	// brings no snapshot within Timeout after the first message of the stream.
	Ask func(ctx context.Context, key K) error

	// Messages and Bytes bound the live messages that are held during fetches, for all streams together. When
	// full, the oldest held messages of the same stream are dropped and fetched later. Default: 4096 messages;
	// 16 MiB of data. Negative: an error.
	Messages, Bytes int

	// AwaitSubscribed says that a session is ready before the streams are subscribed: see Subscriptions in the
	// package documentation. After a seam, and after Follow, a stream is then fetched only after its next live
	// message, a call of [Bridge.Refetch] for it, or the mark of [reconnect.Options].MarkRefetch. Default: a
	// stream is fetched as soon as a session is ready.
	AwaitSubscribed bool

	// Fetches is the maximum number of concurrent calls of Past, Snapshot and Ask, for all streams together.
	// Default: 4. Negative: an error.
	Fetches int

	// Timeout limits each call of Past, Snapshot or Ask. Default: 10 s. Negative: an error.
	Timeout time.Duration

	// Patience is how long the past may lack numbers of live messages, and a snapshot may be older than the
	// stream, because many servers send a message before they store it. After that the numbers count as gone,
	// and the snapshot is taken. Default: 10 s. Negative: no patience.
	Patience time.Duration

	// Policy returns the wait after a failed call. Default: [backoff.Default].
	Policy backoff.Policy

	// OnRetry is called after a failed call for a stream, with the wait before the next call.
	OnRetry func(key K, err error, wait time.Duration)

	// Streams is the maximum number of streams. A message of a further stream is an EventOther. Default: 65536.
	// Negative: an error.
	Streams int
}

// Request selects the items that [Options].Past has to return.
type Request[K comparable] struct {
	Key K

	// After is the position up to which the stream is complete.
	After Cursor

	// Before is the first number after the gap, which is held already, or 0 if unknown. Only a server whose
	// pages go backwards from the newest needs it.
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
