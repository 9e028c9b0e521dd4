package bridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Bridge reads the streams of a Conn, and fetches missed items or snapshots.
//
//	b, err := bridge.New(&bridge.Options[string, Trade]{
//		Parse: parseTrade, // a message: which stream, which number
//		Past:  fetchTrades, // a page of the items after a cursor
//	})
//	if err != nil {
//		return err
//	}
//	for e, err := range b.Events(ctx, feed) { // feed is a *reconnect.Conn
//		if err != nil {
//			return err // ctx or the Conn is done
//		}
//		switch e.Kind {
//		case bridge.EventLive, bridge.EventPast:
//			apply(e.Key, e.Value)
//		case bridge.EventSnapshot:
//			replace(e.Key, e.Value)
//		case bridge.EventStale:
//			distrust(e.Key, e.Err)
//		case bridge.EventLost:
//			discard(e.Key, e.Err) // a state that was built of changes is wrong until the next EventSnapshot
//		case bridge.EventHealed:
//			trust(e.Key)
//		}
//	}
//
// A stream becomes stale at a number that shows a gap, at an item of another epoch, at a seam that is neither
// Resumed nor, for a stream with numbers, Overlapped, and by [Bridge.Refetch]. Its live messages are then held
// while the past is fetched. Live messages without a missing number close the gap, too. Other streams continue
// meanwhile.
//
// Duplicates are recognized by number only. An item without a number (Last is 0) is passed on immediately if
// its stream has numbers. In a stream without numbers it is held while the stream is stale; some changes may
// then come twice, in the snapshot and after it.
//
// One goroutine ranges over Events. Other methods may be called from any goroutine.
type Bridge[K comparable, T any] struct {
	o      Options[K, T]
	turn   atomic.Bool // a goroutine ranges over Events
	random *rand.Rand  // for the waits; belongs to that goroutine
	late   error       // of a call that has not returned within Options.Timeout

	mu      sync.Mutex // guards what follows; never held across I/O, a wait, or a function of the user
	streams map[K]*stream[K, T]
	order   []*stream[K, T] // the same, in the order in which they began; nil: one was forgotten
	pending []*stream[K, T] // the part of order that cause has not reached yet
	cause   error           // of the last cut
	out     []Event[K, T]   // for the reader
	given   int             // how many of out the reader has got
	failure *failure[K, T]  // for Policy; nil: none
	held    amount          // of all streams
	fetches fetches[K, T]   // under way, and to come
	source  Source          // of the last Events
	looping bool            // a loop over Events is in progress
	wake    func()          // ends the present Read; nil: there is none
	stats   Stats           // Streams and Held are not kept here
	visits  int             // of streams, by all, pass and compact: a test limits them
}

// amount is a number of messages, and of bytes.
type amount struct{ messages, bytes int }

// Source is where a [Bridge] reads from, such as a [*reconnect.Conn].
type Source interface {
	// Read returns the next message, or an error. A [*reconnect.Seam] is an item of the stream. When ctx is
	// done, Read returns the error or cause of ctx, or wraps one of them: the Bridge cancels ctx when there is
	// other work, and then reads again. Any other error ends the loop over Events.
	Read(ctx context.Context, buf []byte) (reconnect.Message, error)

	// Await and State behave as the methods of [reconnect.Conn].
	Await(ctx context.Context, s reconnect.State) error
	State() reconnect.State
}

// New returns a Bridge, which need not be closed. The error names the wrong option.
func New[K comparable, T any](o *Options[K, T]) (*Bridge[K, T], error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	late := fmt.Errorf("not answered within %v: %w", options.Timeout, context.DeadlineExceeded)
	return &Bridge[K, T]{o: options, late: late, streams: make(map[K]*stream[K, T]), random: backoff.Rand()}, nil
}

// Events returns the events of a source. An error is the last pair: the cause of ctx, or the error of
// source.Read. While the reader takes no event, the Bridge does not read. If another goroutine is ranging over
// Events, the first pair is an error.
//
// When the loop ends, running calls of Past, Snapshot and Ask are canceled and waited for. Events that were not
// taken are kept for the next loop, which fetches the stale streams again. If its source is another one, or not
// comparable with ==, every stream is stale at first.
func (b *Bridge[K, T]) Events(ctx context.Context, source Source) iter.Seq2[Event[K, T], error] {
	return func(yield func(Event[K, T], error) bool) {
		if b.turn.Swap(true) {
			yield(Event[K, T]{}, errors.New("bridge: Bridge.Events: another goroutine ranges over the events already"))
			return
		}
		defer b.turn.Store(false)
		r := &reading[K, T]{Bridge: b, user: ctx, source: source}
		defer r.end()
		r.begin()
		if err := r.loop(yield); err != nil {
			yield(Event[K, T]{}, err)
		}
	}
}

// Follow begins a stream at a stored cursor, before its first message. The stream is stale until the items
// after the cursor are fetched. A zero Cursor is the beginning: a snapshot if Snapshot or Ask is set, and
// otherwise the number 1. Without Follow a stream begins when its first message comes: with a snapshot
// likewise, and otherwise with that message.
//
// Follow returns an error if the stream has begun already, or if there are Options.Streams streams.
func (b *Bridge[K, T]) Follow(key K, after Cursor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams[key] != nil {
		return errors.New("bridge: Bridge.Follow: the stream has begun already")
	}
	s := b.add(key)
	if s == nil {
		return fmt.Errorf("bridge: Bridge.Follow: too many streams, by Options.Streams: %d", b.o.Streams)
	}
	s.cursor = after
	s.known = s.cursor != Cursor{} || !b.snapshots()
	s.numbered = s.known
	s.reset, s.waits = !s.known, b.o.AwaitSubscribed
	b.gap(s, ErrBegins, 0)
	b.ring()
	return nil
}

// Refetch fetches a stream again from its cursor, because items may be missing: see [Options].AwaitSubscribed.
// A stream that has not begun begins as if by Follow with a zero Cursor, unless there are Options.Streams
// streams already.
//
// session is the session concerned, such as [reconnect.Message].Session of the confirmation, or 0 for none. If
// the reader has yet to meet the seam of an earlier session, the stream is fetched at that seam. Between two
// loops, session refers to the next loop's source; one of another source is forgotten when that loop begins.
func (b *Bridge[K, T]) Refetch(key K, session uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.streams[key]
	if s == nil {
		if s = b.add(key); s == nil {
			return
		}
		s.reset = b.snapshots()
		s.known, s.numbered = !s.reset, !s.reset
	}
	if b.looping {
		s.subscribed = max(s.subscribed, session)
	} else {
		s.forNext = max(s.forNext, session)
	}
	b.gap(s, errRefetch, 0)
	if s.stale {
		b.subscribed(s)
	}
	b.ring()
}

// Forget ends a stream and drops its data, except events that the reader has not taken yet. The next message of
// the stream begins it again.
func (b *Bridge[K, T]) Forget(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(key)
}

// wants reports whether the reader still wants a stream. It is called without the lock.
func (b *Bridge[K, T]) wants(key K) bool { return b.o.Wanted == nil || b.o.Wanted(key) }

// forget is Forget. The caller holds mu.
func (b *Bridge[K, T]) forget(key K) {
	s := b.streams[key]
	if s == nil {
		return
	}
	b.drop(s)
	b.leave(s)
	delete(b.streams, key)
	b.order[s.place], s.place = nil, -1
	if len(b.order) > 2*len(b.streams)+16 && len(b.pending) == 0 {
		b.compact()
	}
	b.ring() // because there may be room now
}

// Stats are counts of a [Bridge].
type Stats struct {
	Streams int // streams that have begun and were not forgotten
	Stale   int // stale streams
	Held    int // live messages that wait for the past

	Fetches uint64 // calls of Past, Snapshot and Ask
	Failed  uint64 // calls that failed or did not bring the missing items
	Dropped uint64 // live messages dropped from the full hold
}

// Stats returns the counts.
func (b *Bridge[K, T]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Streams, s.Held = len(b.streams), b.held.messages
	return s
}

// ring ends the present Read. The caller holds mu.
func (b *Bridge[K, T]) ring() {
	if b.wake != nil {
		b.wake()
	}
}
