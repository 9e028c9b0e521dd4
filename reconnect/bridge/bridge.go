package bridge

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Bridge is the reader's side of a Conn whose streams can be fetched. Where live messages are
// missing it fetches the past, or a snapshot, and gives its reader one sequence of events: those
// of each stream are in order, each item once.
//
//	b, err := bridge.New(&bridge.Options[string, Trade]{
//		Parse: parseTrade, // a message: which stream, which number
//		Past:  fetchTrades, // a page of what comes after a cursor
//	})
//	if err != nil {
//		return err
//	}
//	for e, err := range b.Events(ctx, feed) { // feed is a *reconnect.Conn
//		if err != nil {
//			return err // ctx has ended, or the Conn
//		}
//		switch e.Kind {
//		case bridge.EventLive, bridge.EventPast:
//			apply(e.Key, e.Value)
//		case bridge.EventSnapshot:
//			replace(e.Key, e.Value)
//		case bridge.EventStale:
//			distrust(e.Key, e.Err)
//		case bridge.EventLost:
//			discard(e.Key, e.Err) // what was built of changes is wrong from here on, until a Snapshot
//		case bridge.EventHealed:
//			trust(e.Key)
//		}
//	}
//
// A gap is found in three ways: by the numbers of the items; by a seam that is not Resumed (for
// streams with numbers: and not Overlapped either); by [Bridge.Refetch]. The stream is then
// stale. Live messages are held, and pages of the past are fetched until they meet what is
// held. If live messages come whose numbers leave nothing out, the gap is closed by that. Other
// streams go on meanwhile.
//
// Duplicates are recognized by number only. An item without a number (Last is 0) is passed on at
// once, if its stream has numbers. In a stream that has none it is held until there is a
// snapshot, so that some changes may come twice, in the snapshot and after it.
//
// One goroutine ranges over Events. Any goroutine may call the other methods.
//
// # Where others fail
//
//	a capped page is taken for all of the past (lurker#214)     pages go on until they meet what is held
//	a failed fetch costs the connection (block/buzz#4990)       it is repeated by itself, with growing waits
//	the past is fetched before the subscription is in force     a fetch begins when the session is ready: AwaitSubscribed
//	the place is the largest number that was seen               it stays before a gap
//	offsets of another epoch are compared (Centrifugo's trap)   another epoch is a gap of its own
//	duplicates are found by their bytes (pequin/wsc)            by their numbers only
//	what is held has no limit                                   bounded: the oldest is fetched instead
//	one slow or failing stream stops the others                 each has its own hold, its own fetch and its own wait
type Bridge[K comparable, T any] struct {
	o      Options[K, T]
	turn   atomic.Bool // a goroutine ranges over Events
	random *rand.Rand  // for the waits; belongs to that goroutine

	mu       sync.Mutex // guards what follows; never held across I/O, a wait, or a function of the user
	streams  map[K]*stream[K, T]
	order    list.List       // the same, in the order in which they began
	out      []Event[K, T]   // not yet given to the reader
	retries  []retry[K]      // for OnRetry
	failures []failure[K, T] // for Policy
	held     amount          // of all streams
	fetches  fetches[K, T]   // under way, and to come
	source   Source          // of the last Events
	wake     func()          // ends the present Read; nil: nobody reads
	stats    Stats           // Streams and Held are not kept here
}

// retry is a call of OnRetry.
type retry[K comparable] struct {
	key  K
	err  error
	wait time.Duration
}

// amount is a number of messages, and of bytes.
type amount struct{ messages, bytes int }

// Source is where a [Bridge] reads from. A [*reconnect.Conn] is one.
type Source interface {
	// Read returns the next message, a *[reconnect.Seam], or the end of the source. If its context
	// ends, Read returns the error or the cause of the context, or an error that wraps one of them.
	// The Bridge ends that context when there is something else to do, and reads again after it. Any
	// other error ends the loop over Events.
	Read(ctx context.Context, buf []byte) (reconnect.Message, error)

	// Await and State are those of a Conn.
	Await(ctx context.Context, s reconnect.State) error
	State() reconnect.State
}

// New makes a Bridge. It has nothing to close: what Events starts ends with its loop. The
// error names the option that is wrong.
func New[K comparable, T any](o *Options[K, T]) (*Bridge[K, T], error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Bridge[K, T]{o: options, streams: make(map[K]*stream[K, T]), random: backoff.Rand()}
	b.fetches.pace = options.Pace
	return b, nil
}

// Events returns the events of a source. Any error is the last pair: the cause of ctx, or the
// end of the Conn. While no event is taken, nothing is read.
//
// When the loop ends, for whatever reason, the calls of Past, Snapshot and Ask that it has started
// are canceled, and the loop waits until they have returned. What was not taken is kept: another
// call of Events goes on there, and a stream that is stale is fetched again. With another source
// every stream is stale at first. A source that == cannot compare counts as another one. An error is
// returned at once if another goroutine ranges over Events.
func (b *Bridge[K, T]) Events(ctx context.Context, source Source) iter.Seq2[Event[K, T], error] {
	return func(yield func(Event[K, T], error) bool) {
		if b.turn.Swap(true) {
			yield(Event[K, T]{}, errTwoReaders)
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

var errTwoReaders = errors.New("bridge: another goroutine ranges over Bridge.Events")

// Follow begins a stream at a place that was stored, before a message of it has come. It is stale
// until what comes after the place was fetched. A zero Cursor stands for the beginning of the
// stream: that is a snapshot, if there are any, and else the number 1.
//
// A stream that is not followed begins with its first message: with a snapshot, if there are any,
// and else with that message.
//
// It is an error if the stream has begun already, or if there are too many.
func (b *Bridge[K, T]) Follow(key K, after Cursor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams[key] != nil {
		return errFollowed
	}
	s := b.add(key)
	if s == nil {
		return fmt.Errorf("bridge: more streams than Options.Streams: %d", b.o.Streams)
	}
	s.cursor = after
	s.known = s.cursor != Cursor{} || !b.snapshots()
	s.numbered = s.known
	s.reset, s.waits = !s.known, b.o.AwaitSubscribed
	b.gap(s, ErrBegins, 0)
	b.ring()
	return nil
}

var errFollowed = errors.New("bridge: Bridge.Follow: the stream has begun already")

// Refetch says that something may be missing in a stream: for instance that its subscription was
// confirmed, after the session was ready. See AwaitSubscribed. The stream is fetched once more
// from its cursor on. A stream that has not begun begins as if by Follow, with a zero Cursor. If
// there are too many, nothing happens.
//
// session is the number of the session in which that was so, such as Event.Session of a
// subscription.Set. The reader may be behind: when it meets the seam of an earlier session, the
// stream is fetched at once, because it was subscribed again since. 0 stands for no session.
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
	s.subscribed = max(s.subscribed, session)
	b.refetch(s)
	b.ring()
}

// Forget ends a stream: nothing is kept of it. Its next message begins it anew. Events of it that
// have not been taken still come.
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
	b.fetches.remove(s)
	if s.stale {
		b.stats.Stale--
	}
	delete(b.streams, key)
	b.order.Remove(s.place)
	b.ring() // because there may be room now
}

// Stats are counts of a [Bridge].
type Stats struct {
	Streams int // that have begun
	Stale   int // of these
	Held    int // messages that wait for the past, of all streams

	Fetches uint64 // calls of Past, Snapshot and Ask
	Failed  uint64 // of these
	Dropped uint64 // held messages that were dropped, and that have to be fetched instead
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
