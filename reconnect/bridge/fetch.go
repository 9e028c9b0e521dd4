package bridge

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// fetches are the calls of Past, Snapshot and Ask: those under way, and the streams that wait
// for one. The Bridge's mu guards them.
type fetches[K comparable, T any] struct {
	queue   queue[K, T]
	running int
	results []*job[K, T]   // that have returned, for absorb
	ended   bool           // no session will be ready any more
	waiting bool           // a goroutine waits until a session is ready
	work    sync.WaitGroup // the goroutines
}

// job is one call for a stream.
type job[K comparable, T any] struct {
	s      *stream[K, T]
	kind   jobKind
	r      Request[K]
	round  uint64 // of the stream, at the beginning
	cancel context.CancelFunc

	items []Item[K, T] // the result
	err   error
}

type jobKind uint8

const (
	noJob jobKind = iota
	pastJob
	snapshotJob
	askJob
)

var (
	errNotReturned = errors.New("bridge: the function called runtime.Goexit and did not return")
	errNoPast      = errors.New("there is no way to fetch the missing items")
	errNotThere    = errors.New("the past does not have the missing numbers") // not even after Patience
	errRefetch     = errors.New("Bridge.Refetch was called")
	errUnwanted    = errors.New("bridge: the stream is not wanted any more")
	errNoNumber    = errors.New("bridge: an item of the past, or a snapshot of a numbered stream, has no number (Last is 0)")
	errOldSnapshot = errors.New("bridge: the snapshot is older than the stream")
	errFarSnapshot = errors.New("bridge: the snapshot ends before the first held message")
)

// kind says how what a stream lacks can be fetched.
func (b *Bridge[K, T]) kind(s *stream[K, T]) jobKind {
	switch {
	case b.o.Past != nil && s.known && !s.reset:
		return pastJob
	case b.o.Snapshot != nil:
		return snapshotJob
	case b.o.Ask != nil:
		return askJob
	}
	return noJob
}

// asks reports whether a snapshot has to come in the stream.
func (b *Bridge[K, T]) asks(s *stream[K, T]) bool { return b.kind(s) == askJob }

// subscribed notes that live messages of a stream come, so that its fetch may begin.
func (b *Bridge[K, T]) subscribed(s *stream[K, T]) {
	s.waits = false
	b.expect(s) // because the subscription brings one
	b.enqueue(s)
}

// expect gives a snapshot that has to come in the stream the time to come by itself. If the stream waits longer
// already, that wait stays, because the server may have asked for it.
func (b *Bridge[K, T]) expect(s *stream[K, T]) {
	if at := time.Now().Add(b.o.Timeout); b.asks(s) && at.After(s.due) {
		b.setDue(s, at)
	}
}

// enqueue lets a stale stream wait for its fetch.
func (b *Bridge[K, T]) enqueue(s *stream[K, T]) {
	switch {
	case !s.stale || s.waits || s.rank > 0 || s.job != nil || s.hopeless != nil:
		return
	case b.kind(s) == noJob:
		b.giveUp(s, errNoPast)
		return
	}
	b.fetches.queue.push(s)
}

// setDue sets when the next fetch of a stream may begin; zero: now.
func (b *Bridge[K, T]) setDue(s *stream[K, T], at time.Time) {
	s.due = at
	if s.rank > 0 {
		b.fetches.queue.remove(s)
		b.fetches.queue.push(s)
	}
}

// leave ends the stale time of a stream, and its fetches.
func (b *Bridge[K, T]) leave(s *stream[K, T]) {
	b.fetches.queue.remove(s)
	s.abandon()
	if s.stale {
		s.stale = false
		b.stats.Stale--
	}
}

// abandon cancels the call for a stream, whose result does not count any more.
func (s *stream[K, T]) abandon() {
	if s.job != nil {
		s.job.cancel()
		s.job = nil
	}
}

// due returns when the next call may begin. It returns false if that is not a matter of time.
func (f *fetches[K, T]) due(most int) (from time.Time, ok bool) {
	s, from := f.queue.first()
	if s == nil || f.running >= most || f.waiting || f.ended {
		return time.Time{}, false
	}
	return from, true
}

// start begins the calls for which there is room.
func (b *Bridge[K, T]) start(ctx context.Context, now time.Time) {
	f := &b.fetches
	for {
		from, ok := f.due(b.o.Fetches)
		if !ok || from.After(now) {
			return
		}
		s, _ := f.queue.first()
		f.queue.remove(s)
		f.running++
		b.stats.Fetches++
		ctx, cancel := context.WithTimeoutCause(ctx, b.o.Timeout, b.late)
		j := &job[K, T]{s: s, kind: b.kind(s), round: s.round, cancel: cancel}
		j.r = Request[K]{Key: s.key, After: s.cursor, Before: s.hold.first()}
		s.job = j
		f.work.Go(func() { b.call(ctx, j) }) // reading.end waits for it
	}
}

// call calls the user's function, and leaves the result.
func (b *Bridge[K, T]) call(ctx context.Context, j *job[K, T]) {
	err := errNotReturned
	defer func() {
		j.cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		j.err = err
		b.fetches.running--
		b.fetches.results = append(b.fetches.results, j)
		b.ring()
	}()
	switch {
	case !b.wants(j.r.Key):
		err = errUnwanted
	case j.kind == pastJob:
		j.items, err = b.o.Past(ctx, j.r)
	case j.kind == snapshotJob:
		j.items = make([]Item[K, T], 1)
		j.items[0], err = b.o.Snapshot(ctx, j.r.Key)
	default:
		err = b.o.Ask(ctx, j.r.Key)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
}

// absorb looks at a result.
func (b *Bridge[K, T]) absorb(now time.Time) {
	results := b.fetches.results
	last := len(results) - 1
	j := results[last]
	results[last], b.fetches.results = nil, results[:last]
	s := j.s
	if s.job != j {
		return // it was abandoned
	}
	s.job = nil
	switch {
	case j.err == errUnwanted:
		b.forget(s.key)
	case j.kind == pastJob:
		b.page(j, now)
	case j.err != nil:
		b.retry(s, j.err, now, b.giveUp)
	case j.kind == askJob:
		b.wait(s, now.Add(b.o.Timeout)) // until then a snapshot is expected in the stream
	default:
		b.snapshot(j, now)
	}
}

// snapshot takes a snapshot that was fetched, if it is of use.
func (b *Bridge[K, T]) snapshot(j *job[K, T], now time.Time) {
	s, it := j.s, j.items[0]
	it.Key, it.Snapshot = s.key, true
	same := it.Epoch == s.epochNow()
	var wrong error
	switch {
	case it.Last == 0 && s.hold.first() > 1: // what is held cannot follow it
		wrong = errNoNumber
	case it.Last == 0:
	case s.known && it.Epoch == s.cursor.Epoch && (!same || it.Last < s.cursor.Offset):
		if b.lacks(s, now) {
			b.drop(s) // the numbers have gone back
			s.head = 0
		} else {
			wrong, s.reset = errOldSnapshot, s.stale // because the server may count anew, without an epoch
		}
	case same && b.o.Past == nil && it.Last < s.head && (s.hold.first() == 0 || it.Last+1 < s.hold.first()):
		wrong = errFarSnapshot
	}
	if wrong != nil {
		b.retry(s, wrong, now, b.giveUp)
		return
	}
	s.failed = nil
	b.accept(s, heldItem[K, T]{item: it})
	b.settle(s, j.round)
}

// page takes a page of the past.
func (b *Bridge[K, T]) page(j *job[K, T], now time.Time) {
	s, err, end := j.s, j.err, errors.Is(j.err, io.EOF)
	if err == nil || end {
		err = nil
		if slices.ContainsFunc(j.items, func(it Item[K, T]) bool { return it.Last == 0 }) {
			err = errNoNumber
		}
	}
	if errors.Is(err, ErrTooOld) {
		b.stats.Failed++
		b.tooOld(s, err)
		return
	}
	if err != nil {
		b.retry(s, err, now, b.tooOld)
		return
	}
	fresh := b.insert(s, j.items)
	if s.pages++; s.pages > b.o.Messages {
		fresh = false // they are not getting nearer
	}
	switch open := s.open(); {
	case b.close(s): // the pages have met the live messages
	case !open || fresh:
		s.failed, s.lacking = nil, time.Time{}
		if open || fresh && !end {
			b.wait(s, time.Time{}) // the next page
		} else {
			b.settle(s, j.round)
		}
	case b.lacks(s, now):
		b.tooOld(s, errNotThere)
	default:
		b.retry(s, errNotThere, now, b.tooOld)
	}
}

// insert takes the items of a page, up to one that begins another epoch for which a snapshot is needed.
// It reports whether any of them was new.
func (b *Bridge[K, T]) insert(s *stream[K, T], items []Item[K, T]) (fresh bool) {
	for _, it := range items {
		it.Key = s.key
		n := heldItem[K, T]{item: it}
		if it.Snapshot {
			b.accept(s, n)
			fresh = true
			continue
		}
		at := s.cursor.place(it.Epoch, it.first(), it.Last)
		if at == PlacementNewEpoch && s.entered && it.Epoch == s.before {
			continue
		}
		if at == PlacementNewEpoch {
			if b.turnOver(s, it.Epoch, s.changed); s.apart {
				return true
			}
			at = s.cursor.place(it.Epoch, it.first(), it.Last)
		}
		switch at {
		case PlacementNext:
			fresh = true
			b.take(s, n)
			b.drain(s)
		case PlacementGap:
			s.head = max(s.head, it.Last) // even if there is no room for it
			fresh = b.hold(s, n) || fresh
		}
	}
	return fresh
}

// lacks reports whether fetches have not brought what is missing for too long.
func (b *Bridge[K, T]) lacks(s *stream[K, T], now time.Time) bool {
	if s.lacking.IsZero() {
		s.lacking = now
	}
	return now.Sub(s.lacking) >= b.o.Patience
}

// tooOld notes that the past cannot be had.
func (b *Bridge[K, T]) tooOld(s *stream[K, T], err error) {
	s.failed, s.lacking = nil, time.Time{}
	b.setDue(s, time.Time{})
	if !b.snapshots() {
		b.giveUp(s, err)
		return
	}
	s.reset = true
	b.enqueue(s)
}

// wait has a call for s begin at a time.
func (b *Bridge[K, T]) wait(s *stream[K, T], at time.Time) {
	b.setDue(s, at)
	b.enqueue(s)
}
