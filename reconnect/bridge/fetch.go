package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// fetches are the calls of Past, Snapshot and Ask: those under way, and the streams that wait
// for one. The Bridge's mu guards them.
type fetches[K comparable, T any] struct {
	queue   queue[K, T]
	running int
	pace    budget.Window
	changed bool           // it may be that one can begin
	next    time.Time      // when one can begin; zero: it is not a matter of time
	results []result[K, T] // for absorb
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
}

type jobKind uint8

const (
	noJob jobKind = iota
	pastJob
	snapshotJob
	askJob
)

// result is what a job has brought.
type result[K comparable, T any] struct {
	job   *job[K, T]
	items []Item[K, T]
	err   error
}

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
	if b.asks(s) { // the subscription is expected to bring a snapshot
		b.setDue(s, time.Now().Add(b.o.Timeout))
	}
	b.enqueue(s)
}

// refetch is Refetch for a stream that has begun.
func (b *Bridge[K, T]) refetch(s *stream[K, T]) {
	b.gap(s, errRefetch, 0)
	if s.stale {
		b.subscribed(s)
	}
}

// enqueue lets a stale stream wait for its fetch.
func (b *Bridge[K, T]) enqueue(s *stream[K, T]) {
	switch {
	case !s.stale || s.waits || s.turn.rank > 0 || s.job != nil || s.hopeless != nil:
		return
	case b.kind(s) == noJob:
		b.giveUp(s, errNoPast)
		return
	}
	b.fetches.queue.push(s)
	b.fetches.changed = true
}

// setDue sets when the next fetch of a stream may begin; zero: now.
func (b *Bridge[K, T]) setDue(s *stream[K, T], at time.Time) {
	s.due = at
	if s.turn.rank > 0 {
		b.fetches.queue.remove(s)
		b.fetches.queue.push(s)
		b.fetches.changed = true
	}
}

// remove takes a stream out of the queue, and abandons the call for it.
func (f *fetches[K, T]) remove(s *stream[K, T]) {
	f.queue.remove(s)
	s.abandon()
}

// abandon cancels the call for a stream, whose result does not count any more.
func (s *stream[K, T]) abandon() {
	if s.job != nil {
		s.job.cancel()
		s.job = nil
	}
}

// wanted reports whether a call might begin now if a session is ready.
func (f *fetches[K, T]) wanted(now time.Time, most int) bool {
	if f.queue.first() == nil || f.running >= most || f.ended {
		return false
	}
	return f.changed || !f.next.IsZero() && !now.Before(f.next)
}

// begin begins the calls for which there is room, and sets when the next one can begin.
func (b *Bridge[K, T]) begin(ctx context.Context, now time.Time) {
	f := &b.fetches
	f.changed, f.next = false, time.Time{}
	for f.running < b.o.Fetches {
		s := f.queue.first()
		if s == nil {
			return
		}
		for _, at := range [...]time.Time{s.turn.from, f.pace.At(now)} {
			if at.After(now) {
				f.next = at
				return
			}
		}
		f.queue.remove(s)
		f.pace.Take(now)
		f.running++
		b.stats.Fetches++
		b.start(ctx, s)
	}
}

// start begins a call for s.
func (b *Bridge[K, T]) start(ctx context.Context, s *stream[K, T]) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Timeout, fmt.Errorf("not answered within %v: %w", b.o.Timeout, context.DeadlineExceeded))
	j := &job[K, T]{s: s, kind: b.kind(s), round: s.round, cancel: cancel}
	j.r = Request[K]{Key: s.key, After: s.cursor, Before: s.hold.first()}
	s.job = j
	b.fetches.work.Go(func() { b.call(ctx, j) }) // reading.end waits for it
}

// call calls the user's function, and leaves the result.
func (b *Bridge[K, T]) call(ctx context.Context, j *job[K, T]) {
	defer j.cancel()
	r := result[K, T]{job: j, err: errNotReturned}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.fetches.running--
		b.fetches.changed = true
		b.fetches.results = append(b.fetches.results, r)
		b.ring()
	}()
	if !b.wants(j.r.Key) {
		r.err = errUnwanted
		return
	}
	var items []Item[K, T]
	var err error
	switch j.kind {
	case pastJob:
		items, err = b.o.Past(ctx, j.r)
	case snapshotJob:
		items = make([]Item[K, T], 1)
		items[0], err = b.o.Snapshot(ctx, j.r.Key)
	default:
		err = b.o.Ask(ctx, j.r.Key)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	r.items, r.err = items, err
}

// absorb looks at the results.
func (b *Bridge[K, T]) absorb(now time.Time) {
	results := b.fetches.results
	b.fetches.results = nil
	for _, r := range results {
		s := r.job.s
		if s.job != r.job {
			continue // it was abandoned
		}
		s.job = nil
		switch {
		case r.err == errUnwanted:
			b.forget(s.key)
		case r.job.kind == pastJob:
			b.page(s, r, now)
		case r.err != nil:
			b.failedReset(s, r.err, now)
		case r.job.kind == askJob:
			b.wait(s, now.Add(b.o.Timeout)) // until then a snapshot is expected in the stream
		default:
			b.snapshot(s, r, now)
		}
	}
}

// failedReset notes that there is no snapshot.
func (b *Bridge[K, T]) failedReset(s *stream[K, T], err error, now time.Time) {
	b.stats.Failed++
	b.retry(s, err, now, b.giveUp)
}

// snapshot takes a snapshot that was fetched, if it is of use.
func (b *Bridge[K, T]) snapshot(s *stream[K, T], r result[K, T], now time.Time) {
	it := r.items[0]
	it.Key, it.Snapshot = s.key, true
	same := it.Epoch == s.epochNow()
	switch {
	case it.Last == 0 && s.hold.first() > 1: // what is held cannot follow it
		b.failedReset(s, errNoNumber, now)
		return
	case it.Last == 0:
	case s.known && it.Epoch == s.cursor.Epoch && (!same || it.Last < s.cursor.Offset):
		if !b.lacks(s, now) {
			s.reset = s.stale // because the server may count anew, without an epoch
			b.failedReset(s, errOldSnapshot, now)
			return
		}
		b.drop(s) // the numbers have gone back
		s.head = 0
	case same && b.o.Past == nil && it.Last < s.head && (s.hold.first() == 0 || it.Last+1 < s.hold.first()):
		b.failedReset(s, errFarSnapshot, now)
		return
	}
	s.failed = nil
	b.accept(s, heldItem[K, T]{item: it})
	b.settle(s, r.job.round)
}

// page takes a page of the past.
func (b *Bridge[K, T]) page(s *stream[K, T], r result[K, T], now time.Time) {
	end := errors.Is(r.err, io.EOF)
	if r.err == nil || end {
		r.err = nil
		for i := range r.items {
			if r.items[i].Last == 0 {
				r.err = errNoNumber
			}
		}
	}
	if r.err != nil {
		b.stats.Failed++
		if errors.Is(r.err, ErrTooOld) {
			b.tooOld(s, r.err)
			return
		}
		b.retry(s, r.err, now, b.tooOld)
		return
	}
	fresh, turned := b.insert(s, r.items)
	if turned {
		return
	}
	if s.pages++; s.pages > b.o.Messages {
		fresh = false // they are not getting nearer
	}
	switch open := s.open(); {
	case b.close(s): // the pages have met the live messages
	case !open && (end || !fresh):
		b.settle(s, r.job.round)
	case !open || fresh:
		s.failed, s.lacking = nil, time.Time{}
		b.wait(s, time.Time{})
	case b.lacks(s, now):
		b.tooOld(s, errNotThere)
	default:
		b.stats.Failed++
		b.retry(s, errNotThere, now, b.tooOld)
	}
}

// insert takes the items of a page. It reports whether any of them was new, and whether they
// have begun another epoch for which a snapshot is needed.
func (b *Bridge[K, T]) insert(s *stream[K, T], items []Item[K, T]) (fresh, turned bool) {
	for _, it := range items {
		it.Key = s.key
		n := heldItem[K, T]{item: it}
		if it.Snapshot {
			b.accept(s, n)
			fresh = true
			continue
		}
		at := s.cursor.place(it.Epoch, it.first(), it.Last)
		if at == PlacementNewEpoch {
			if b.turnOver(s, it.Epoch, s.changed); s.apart {
				return true, true
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
	return fresh, false
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
