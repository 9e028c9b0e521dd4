package bridge

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// reading is one loop over the events of a Bridge. Its fields belong to the goroutine of the loop.
type reading[K comparable, T any] struct {
	*Bridge[K, T]
	user   context.Context // of the caller
	source Source
	stop   context.CancelFunc // ends life
	life   context.Context    // of all calls of Past, Snapshot and Ask

	read   context.Context // of the present Read
	cancel context.CancelFunc
	until  time.Time // when read ends by itself; zero: never
}

// begin begins the loop. Work that an earlier loop has left goes on.
func (r *reading[K, T]) begin() {
	r.life, r.stop = context.WithCancel(r.user)
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.Bridge.source
	another := last != nil && (!reflect.ValueOf(last).Comparable() || last != r.source)
	for s := range r.all {
		if another { // which counts its sessions from 1
			s.subscribed, s.changed = 0, 0
		}
		s.subscribed, s.forNext = max(s.subscribed, s.forNext), 0
	}
	if another {
		r.cut(ErrBegins)
	}
	r.Bridge.source, r.looping = r.source, true
	r.fetches.ended = false
}

// end ends the calls under way, and waits for them. Their streams wait for the next loop.
func (r *reading[K, T]) end() {
	r.mu.Lock()
	r.wake, r.looping = nil, false
	r.mu.Unlock()
	r.stop()
	if r.cancel != nil {
		r.cancel()
	}
	r.fetches.work.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetches.results, r.failure = nil, nil
	for s := range r.all {
		s.job = nil
		r.enqueue(s) // if it is stale
	}
}

// loop gives the events to yield until that returns false, and returns nil then, or the error
// that ends the stream.
func (r *reading[K, T]) loop(yield func(Event[K, T], error) bool) error {
	for {
		switch e, do := r.next(); do {
		case decide:
			r.decide()
		case give:
			if !yield(e, nil) {
				return nil
			}
		case fetch:
			r.fetch()
		case read:
			if err := r.receive(); err != nil {
				return err
			}
		}
	}
}

// todo is what the loop does next.
type todo uint8

const (
	decide todo = iota // about a failure
	give               // an event
	fetch              // a stream
	read               // what the source has
)

// next returns what to do next, and the event to give.
func (r *reading[K, T]) next() (e Event[K, T], do todo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.fetches
	for len(r.pending) > 0 && r.failure == nil && len(r.out) == 0 {
		r.pass()
	}
	for len(f.results) > 0 && r.failure == nil && len(r.pending) == 0 { // a result heals no stream that is still to become stale
		r.absorb(time.Now())
	}
	switch from, ok := f.due(r.o.Fetches); {
	case r.failure != nil:
		return e, decide
	case r.given < len(r.out):
		e, r.out[r.given] = r.out[r.given], e
		if r.given++; r.given == len(r.out) {
			r.given, r.out = 0, r.out[:0]
			if cap(r.out) > 16 {
				r.out = nil // so that an idle Bridge is small
			}
		}
		return e, give
	case ok && !from.After(time.Now()):
		return e, fetch
	default:
		r.arm(from)
		return e, read
	}
}

// arm makes the context of the next Read, which ends at a time, unless that is zero. The caller holds mu.
func (r *reading[K, T]) arm(until time.Time) {
	if r.read != nil && r.read.Err() == nil && r.until == until {
		return
	}
	if r.cancel != nil {
		r.cancel()
	}
	if r.until = until; until.IsZero() {
		r.read, r.cancel = context.WithCancel(r.user)
	} else {
		r.read, r.cancel = context.WithDeadline(r.user, until)
	}
	r.wake = r.cancel
}

// receive reads once. It returns the error that ends the loop.
func (r *reading[K, T]) receive() error {
	m, err := r.source.Read(r.read, nil)
	if err == nil {
		r.message(m)
		return nil
	}
	if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seam(seam)
		return nil
	}
	// An error that is not of the context counts even if the context has ended in the same moment: the
	// source may not repeat it.
	ended := r.read.Err()
	switch {
	case ended == nil || !errors.Is(err, ended) && !errors.Is(err, context.Cause(r.read)):
		return err
	case r.user.Err() != nil:
		return context.Cause(r.user)
	}
	return nil
}

// message takes a message.
func (r *reading[K, T]) message(m reconnect.Message) {
	it, ok := r.o.Parse(m)
	unwanted := ok && !r.wants(it.Key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if unwanted {
		r.forget(it.Key)
	}
	if !ok || unwanted {
		r.push(Event[K, T]{Kind: EventOther, Session: m.Session, Message: m})
		return
	}
	r.Bridge.message(m, it)
}

// fetch begins fetches, or has the loop wake when a session is ready.
func (r *reading[K, T]) fetch() {
	ready := r.source.State() == reconnect.StateReady
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.fetches
	if ready {
		r.start(r.life, time.Now())
		return
	}
	f.waiting = true
	f.work.Go(func() { // end waits for it
		err := r.source.Await(r.life, reconnect.StateReady)
		r.mu.Lock()
		defer r.mu.Unlock()
		f.waiting, f.ended = false, err != nil // Read says why
		r.ring()
	})
}
