package bridge

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// reading is one loop over the events of a Bridge. Its fields belong to the goroutine of the
// loop, except as mu says.
type reading[K comparable, T any] struct {
	*Bridge[K, T]
	user   context.Context // of the caller
	source Source
	stop   context.CancelFunc // ends life
	life   context.Context    // of all calls of Past, Snapshot and Ask

	read   context.Context // of the present Read; another goroutine may end it while it holds mu
	cancel context.CancelFunc
	until  time.Time     // when read ends by itself; zero: never
	events []Event[K, T] // that yield gets
	taken  int           // how many of them it has got
	free   []Event[K, T] // the memory of the events that were given last
}

// begin begins the loop. What an earlier one has left goes on.
func (r *reading[K, T]) begin() {
	r.life, r.stop = context.WithCancel(r.user)
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.Bridge.source; last != nil && (!reflect.ValueOf(last).Comparable() || last != r.source) {
		for s := range r.all {
			s.changed = 0 // its sessions are counted anew
			r.gap(s, ErrBegins, 0)
		}
	}
	r.Bridge.source = r.source
	r.fetches.changed, r.fetches.ended = true, false
}

// end ends the calls under way, and waits for them. Their streams wait for the next loop.
func (r *reading[K, T]) end() {
	r.mu.Lock()
	r.wake = nil
	r.giveBack()
	r.mu.Unlock()
	r.stop()
	if r.cancel != nil {
		r.cancel()
	}
	r.fetches.work.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetches.results, r.failures = nil, nil
	for s := range r.all {
		s.job = nil
		r.enqueue(s) // if it is stale
	}
}

// loop gives the events to yield until that returns false, and returns nil then, or the error
// that ends the stream.
func (r *reading[K, T]) loop(yield func(Event[K, T], error) bool) error {
	for {
		if !r.prepare(yield) {
			return nil
		}
		m, err := r.source.Read(r.read, nil)
		if err == nil {
			r.message(m)
			continue
		}
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			r.mu.Lock()
			r.seam(seam)
			r.mu.Unlock()
			continue
		}
		switch {
		case !r.interrupted(err):
			return err
		case r.user.Err() != nil:
			return context.Cause(r.user)
		}
	}
}

// interrupted reports whether err, of a Read, says that the context of the Read has ended. Another
// error counts even if the context has ended in the same moment: the source may not repeat it.
func (r *reading[K, T]) interrupted(err error) bool {
	ended := r.read.Err()
	return ended != nil && (errors.Is(err, ended) || errors.Is(err, context.Cause(r.read)))
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

// prepare gives the reader all events that are there, begins fetches, and makes the context of
// the next Read. It returns false if the reader has enough.
func (r *reading[K, T]) prepare(yield func(Event[K, T], error) bool) bool {
	for {
		r.absorb()
		retries, wants := r.collect()
		for _, c := range retries {
			r.o.OnRetry(c.key, c.err, c.wait)
		}
		for r.taken < len(r.events) {
			r.taken++
			if !yield(r.events[r.taken-1], nil) {
				return false
			}
		}
		r.recycle()
		if wants {
			r.fetch()
		}
		if r.arm() {
			return true
		}
	}
}

// absorb looks at the results of the calls.
func (r *reading[K, T]) absorb() {
	r.mu.Lock()
	if len(r.fetches.results) > 0 {
		r.Bridge.absorb(time.Now())
	}
	failed := len(r.failures) > 0
	r.mu.Unlock()
	if failed {
		r.decide()
	}
}

// collect takes the events that are there for the reader. It returns the calls of OnRetry that are
// to be made, and whether a fetch might begin.
func (r *reading[K, T]) collect() (retries []retry[K], wants bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fetches.queue.first() != nil {
		wants = r.fetches.wanted(time.Now(), r.o.Fetches)
	}
	r.events, r.taken, r.out = r.out, 0, r.free
	retries, r.retries = r.retries, nil
	r.free = nil
	return retries, wants
}

// recycle keeps the memory of events that were given to the reader, if it is little.
func (r *reading[K, T]) recycle() {
	if cap(r.events) <= 16 {
		clear(r.events)
		r.free = r.events[:0]
	}
	r.events, r.taken = nil, 0
}

// giveBack keeps the events that the reader has not taken, also if a function of the user has
// ended the loop. The caller holds mu.
func (r *reading[K, T]) giveBack() {
	if rest := r.events[r.taken:]; len(rest) > 0 {
		r.out = append(append([]Event[K, T](nil), rest...), r.out...)
	}
	r.events, r.taken = nil, 0
}

// arm makes the context of the next Read. It returns false if there is something to do before.
func (r *reading[K, T]) arm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &r.fetches
	if len(r.out) > 0 || len(f.results) > 0 || f.changed && f.wanted(time.Now(), r.o.Fetches) && !f.waiting {
		return false
	}
	next := f.next
	if f.queue.first() == nil || f.running >= r.o.Fetches || f.waiting || f.ended {
		next = time.Time{} // nothing waits for that time, or for something else before it
	}
	if r.read == nil || r.read.Err() != nil || r.until != next {
		if r.cancel != nil {
			r.cancel()
		}
		if r.until = next; next.IsZero() {
			r.read, r.cancel = context.WithCancel(r.user)
		} else {
			r.read, r.cancel = context.WithDeadline(r.user, r.until)
		}
		r.wake = r.cancel
	}
	return true
}

// fetch begins fetches, or has the loop wake when a session is ready.
func (r *reading[K, T]) fetch() {
	ready := r.source.State() == reconnect.StateReady
	r.mu.Lock()
	defer r.mu.Unlock()
	if ready {
		r.Bridge.begin(r.life, time.Now())
	} else {
		r.awaitReady()
	}
}

// awaitReady has the loop wake when a session is ready. The caller holds mu.
func (r *reading[K, T]) awaitReady() {
	f := &r.fetches
	if f.waiting {
		return
	}
	f.waiting = true
	f.work.Go(func() { // end waits for it
		err := r.source.Await(r.life, reconnect.StateReady)
		r.mu.Lock()
		defer r.mu.Unlock()
		f.waiting, f.changed, f.ended = false, true, err != nil // Read says why
		r.ring()
	})
}
