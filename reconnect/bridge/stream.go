package bridge

import (
	"slices"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect"
)

// stream is one stream of a Bridge, whose mu guards it.
type stream[K comparable, T any] struct {
	key      K
	place    int    // in Bridge.order
	cursor   Cursor // what was given to the reader is complete up to here
	known    bool   // there is a cursor
	numbered bool   // its items have numbers
	stale    bool   // something may be missing
	reset    bool   // only a snapshot can mend that
	hopeless error  // nothing can mend that, so that what is missing is lost; nil: something can

	hold  hold[K, T]
	epoch string // of what is held
	apart bool   // what is held does not follow the cursor: another epoch, or there is no cursor
	head  uint64 // the highest number that a live message had, in the epoch of what is held

	before  string // the last epoch, whose messages may still come by an older session
	entered bool   // before has ended, and nothing has been taken since: a page may still have the end of it
	changed uint64 // the session in which it ended; 0: there was none, or it was of another source
	proof   uint64 // round when the last live number came: after the last reason to fetch?
	seen    int    // live messages in a row that had come before

	subscribed uint64 // the newest session given to Refetch, of this source
	forNext    uint64 // the same, given between two loops: it may be of the next source
	replaced   bool   // since a seam that has overlapped, nothing new has come: a snapshot may be behind

	// The fetches of the stream. See fetch.go.
	round   uint64           // counts the reasons to fetch; a fetch serves those before its beginning
	waits   bool             // for a live message, or for Refetch
	rank    int              // index in the queue, plus 1; 0: the stream is not in the queue
	due     time.Time        // when the next fetch may begin; zero: now; see setDue
	job     *job[K, T]       // under way; nil: none
	failed  *schedule.Outage // the failures in a row; nil: none
	lacking time.Time        // since when fetches have not brought what is missing; zero: they have
	pages   int              // since the cursor has moved
}

// maxSeen is how many live messages in a row may have come before.
const maxSeen = 1000

// add begins a stream. It returns nil if there are too many.
func (b *Bridge[K, T]) add(key K) *stream[K, T] {
	if len(b.streams) >= b.o.Streams {
		return nil
	}
	s := &stream[K, T]{key: key, place: len(b.order)}
	b.streams[key] = s
	b.order = append(b.order, s)
	return s
}

// all calls yield with each stream, in the order in which they began. None may be forgotten meanwhile.
func (b *Bridge[K, T]) all(yield func(*stream[K, T]) bool) {
	for _, s := range b.order {
		b.visits++
		if s != nil && !yield(s) {
			return
		}
	}
}

// compact removes what was forgotten from order.
func (b *Bridge[K, T]) compact() {
	b.visits += len(b.order)
	b.order = slices.DeleteFunc(b.order, func(s *stream[K, T]) bool { return s == nil })
	for i, s := range b.order {
		s.place = i
	}
}

// snapshots reports whether there is a way to get snapshots.
func (b *Bridge[K, T]) snapshots() bool { return b.o.Snapshot != nil || b.o.Ask != nil }

// message takes a live message that is an item.
func (b *Bridge[K, T]) message(m reconnect.Message, it Item[K, T]) {
	s := b.streams[it.Key]
	if s == nil {
		if s = b.add(it.Key); s == nil {
			b.push(Event[K, T]{Kind: EventOther, Item: it, Session: m.Session, Message: m})
			return
		}
		if it.Last == 0 && !it.Snapshot && b.snapshots() {
			s.reset = true
			b.snapshotFirst(s)
		}
	}
	if s.waits {
		b.subscribed(s)
	}
	n := heldItem[K, T]{it, m.Session, len(m.Data)}
	switch {
	case it.Snapshot && s.replaced && !s.stale && it.Epoch == s.cursor.Epoch && it.Last > 0 && it.Last <= s.cursor.Offset:
		s.replaced = false // the next session begins with it, and the last one has brought more
	case it.Snapshot && it.Last > 0 && s.outdated(&n):
	case it.Snapshot:
		b.accept(s, n)
		if s.stale {
			b.expect(s)
		}
		b.settle(s, s.round)
	case it.Last == 0 && (s.numbered || !s.stale):
		b.give(s, n)
	case it.Last == 0:
		b.hold(s, n)
	default:
		b.number(s, n)
	}
}

// number takes a live item with a number.
func (b *Bridge[K, T]) number(s *stream[K, T], n heldItem[K, T]) {
	s.numbered = true
	it := &n.item
	if !s.known && !s.apart {
		b.begins(s, it)
	}
	if s.outdated(&n) {
		return
	}
	if it.Epoch != s.epoch && (s.apart || s.cursor == (Cursor{}) && s.head > 0) {
		b.drop(s)
		if s.apart && !s.known { // the stream has begun with the epoch that ends here
			s.cursor, s.known = Cursor{Epoch: s.epoch}, true
		}
		s.before, s.changed, s.epoch, s.head, s.lacking = s.epoch, n.session, it.Epoch, 0, time.Time{}
		s.round++
		if !s.apart { // a past of the last epoch does not count
			s.abandon()
			b.enqueue(s)
		}
	}
	if s.apart {
		b.await(s, n)
		return
	}
	switch s.cursor.place(it.Epoch, it.first(), it.Last) {
	case PlacementNext:
		s.seen, s.proof, s.replaced = 0, s.round, false
		b.take(s, n)
		if s.stale {
			b.drain(s)
			b.close(s)
		}
	case PlacementSeen:
		if s.seen++; s.seen == maxSeen {
			b.push(Event[K, T]{Kind: EventOther, Item: Item[K, T]{Key: s.key}, Err: ErrOnlySeen})
		}
	case PlacementNewEpoch:
		if b.turnOver(s, it.Epoch, n.session); s.apart {
			b.await(s, n)
		} else {
			b.number(s, n)
		}
	default:
		if !s.stale {
			b.gap(s, &gapError{s.cursor.Offset + 1, it.first() - 1}, it.first()-1)
		}
		b.await(s, n)
	}
}

// begins begins the numbers of a stream: with a snapshot, or with this item.
func (b *Bridge[K, T]) begins(s *stream[K, T], it *Item[K, T]) {
	if !b.snapshots() {
		s.cursor, s.known = Cursor{it.Epoch, it.first() - 1}, true
		return
	}
	s.apart, s.epoch, s.reset = true, it.Epoch, true
	if !s.stale {
		b.snapshotFirst(s)
	}
}

// snapshotFirst makes s, whose first message has come, stale until its first snapshot.
func (b *Bridge[K, T]) snapshotFirst(s *stream[K, T]) {
	b.expect(s) // because the subscription brings one
	b.gap(s, ErrBegins, 0)
}

// outdated reports whether a live item is of the last epoch, and came by an older session.
func (s *stream[K, T]) outdated(n *heldItem[K, T]) bool {
	return s.changed > n.session && n.item.Epoch == s.before && n.item.Epoch != s.epochNow()
}

// epochNow is the epoch of what comes now.
func (s *stream[K, T]) epochNow() string {
	if s.apart || s.known && s.cursor == (Cursor{}) {
		return s.epoch
	}
	return s.cursor.Epoch
}

// await holds a live item until what is before it has come, or gives that up.
func (b *Bridge[K, T]) await(s *stream[K, T], n heldItem[K, T]) {
	s.seen, s.proof, s.head = 0, s.round, max(s.head, n.item.Last)
	b.hold(s, n)
	if s.hopeless != nil {
		b.lose(s)
	}
}

// turnOver begins another epoch, which an item by session has shown.
func (b *Bridge[K, T]) turnOver(s *stream[K, T], epoch string, session uint64) {
	old := s.cursor
	b.drop(s)
	s.abandon()
	s.before, s.changed, s.head, s.hopeless, s.lacking = old.Epoch, session, 0, nil, time.Time{}
	if s.epoch = epoch; b.snapshots() {
		s.apart, s.reset = true, true
	} else {
		s.cursor, s.entered = Cursor{Epoch: epoch}, true
	}
	b.gap(s, ErrNewEpoch, 0)
	if !s.reset {
		b.push(Event[K, T]{Kind: EventLost, Item: Item[K, T]{Key: s.key, Epoch: old.Epoch, First: old.Offset + 1}, Err: ErrNewEpoch})
	}
}

// take gives an item that is due to the reader, and moves the cursor over it.
func (b *Bridge[K, T]) take(s *stream[K, T], n heldItem[K, T]) {
	if s.cursor == (Cursor{}) && n.item.Epoch != s.epoch {
		b.leaveEpoch(s)
	}
	s.cursor, s.known, s.entered = Cursor{n.item.Epoch, n.item.Last}, true, false
	s.pages = 0
	b.give(s, n)
}

// leaveEpoch drops what is held, because an item of another epoch has come. If a live number has come since the last
// reason to fetch, it is of the epoch that ends here, so it proves nothing, and the item may be older: another fetch is due.
func (b *Bridge[K, T]) leaveEpoch(s *stream[K, T]) {
	if s.proof == s.round {
		s.round++
	}
	b.drop(s)
	s.head = 0
}

// give gives an item to the reader.
func (b *Bridge[K, T]) give(s *stream[K, T], n heldItem[K, T]) {
	e := Event[K, T]{Kind: EventLive, Item: n.item, Session: n.session}
	if n.session == 0 {
		e.Kind = EventPast
	}
	b.push(e)
}

// push appends an event.
func (b *Bridge[K, T]) push(e Event[K, T]) { b.out = append(b.out, e) }

// drain gives the reader what is held and due.
func (b *Bridge[K, T]) drain(s *stream[K, T]) {
	for len(s.hold.list) > 0 {
		it := &s.hold.list[0].item
		if it.Last == 0 {
			b.give(s, b.pop(s))
			continue
		}
		switch s.cursor.place(it.Epoch, it.first(), it.Last) {
		case PlacementNext:
			b.take(s, b.pop(s))
		case PlacementGap:
			return
		default:
			b.pop(s) // it has come by another way
		}
	}
}

// accept takes a snapshot: what was before it does not count any more.
func (b *Bridge[K, T]) accept(s *stream[K, T], n heldItem[K, T]) {
	it := &n.item
	if it.Epoch != s.epochNow() {
		b.leaveEpoch(s)
	}
	if it.Epoch != s.cursor.Epoch && s.known && n.session > 0 {
		s.before, s.changed = s.cursor.Epoch, n.session
	}
	s.cursor, s.known = Cursor{it.Epoch, it.Last}, it.Last > 0
	s.numbered = s.numbered || s.known
	s.replaced, s.entered = false, false
	s.reset, s.apart, s.hopeless, s.seen, s.pages, s.lacking = false, false, nil, 0, 0, time.Time{}
	if n.session > 0 {
		s.abandon()
	}
	b.push(Event[K, T]{Kind: EventSnapshot, Item: *it, Session: n.session})
	b.drain(s)
}

// gap notes that something may be missing, up to the number last if that is known, and has it
// fetched.
func (b *Bridge[K, T]) gap(s *stream[K, T], cause error, last uint64) {
	s.round++
	s.hopeless = nil
	if !s.stale {
		s.stale = true
		b.stats.Stale++
		missing := Item[K, T]{Key: s.key, Epoch: s.cursor.Epoch, First: s.cursor.Offset + 1, Last: last}
		b.push(Event[K, T]{Kind: EventStale, Item: missing, Err: cause})
	}
	if seam, ok := cause.(*reconnect.Seam); ok && seam.Lost > 0 {
		if s.waits = (b.o.AwaitSubscribed || b.asks(s)) && s.subscribed <= seam.Session; s.waits {
			b.fetches.queue.remove(s) // a retry waits for the subscription, too
		}
	}
	b.enqueue(s)
}

// seam takes a seam: all streams may have a gap, unless the protocol or the numbers vouch for
// them.
func (b *Bridge[K, T]) seam(seam *reconnect.Seam) {
	b.push(Event[K, T]{Kind: EventOther, Session: seam.Session, Err: seam})
	switch {
	case seam.Refetch && seam.Lost == 0 && seam.Dropped == 0:
		b.marked()
	case !seam.Resumed:
		b.cut(seam)
	}
}

// cut has every stream passed before the next Read.
func (b *Bridge[K, T]) cut(cause error) {
	b.cause, b.pending = cause, b.order
	b.fetches.queue.heap = slices.Grow(b.fetches.queue.heap, len(b.streams))
}

// pass takes the next stream that is pending. The reader gets its event before the next stream is taken,
// so that the events of many streams need no memory.
func (b *Bridge[K, T]) pass() {
	s := b.pending[0]
	if b.pending = b.pending[1:]; len(b.pending) == 0 {
		b.pending = nil // so that a forgotten stream is not kept
	}
	b.visits++
	seam, ok := b.cause.(*reconnect.Seam)
	switch {
	case s == nil || s.place < 0: // it was forgotten
	case ok && seam.Overlapped && seam.Dropped == 0 && s.numbered:
		s.replaced = true
	default:
		b.gap(s, b.cause, 0)
	}
}

// marked notes that the session has what was wanted: no stream waits for its subscription any more.
func (b *Bridge[K, T]) marked() {
	for s := range b.all {
		if s.waits {
			b.subscribed(s)
		}
	}
}

// close heals a stream if it has everything up to a live item that came after the last reason to
// fetch. It reports whether it did. If only a snapshot can mend the stream, numbers that follow
// prove nothing: the server may count anew.
func (b *Bridge[K, T]) close(s *stream[K, T]) bool {
	if s.reset || s.open() || s.proof != s.round {
		return false
	}
	b.heal(s)
	return true
}

// open reports whether something is known to be missing.
func (s *stream[K, T]) open() bool { return len(s.hold.list) > 0 || s.head > s.cursor.Offset }

// settle looks at a stream after a fetch which began after so many reasons for it, or after a
// snapshot: it is complete, or the next fetch is due.
func (b *Bridge[K, T]) settle(s *stream[K, T], round uint64) {
	switch {
	case !s.stale:
	case s.reset || s.known && s.open() || round != s.round && s.proof != s.round:
		b.enqueue(s)
	default:
		b.heal(s)
	}
}

// heal ends the gap of a stream.
func (b *Bridge[K, T]) heal(s *stream[K, T]) {
	b.leave(s)
	s.waits, s.reset, s.hopeless, s.failed = false, false, nil, nil
	s.due, s.lacking, s.pages = time.Time{}, time.Time{}, 0
	b.push(Event[K, T]{Kind: EventHealed, Item: Item[K, T]{Key: s.key, Epoch: s.cursor.Epoch, Last: s.cursor.Offset}})
}
