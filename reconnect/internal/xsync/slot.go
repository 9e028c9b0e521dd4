package xsync

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Slot is a lock for one goroutine at a time, and a context can end the wait for it. Like a
// mutex it prefers speed to fairness: a goroutine that releases it may get it again before
// one that waits, but at most maxLost times.
type Slot struct {
	state atomic.Uint32 // taken, waited

	mu   sync.Mutex // guards what follows; never held while waiting
	last *waiter    // of a ring, in the order in which they get the slot; nil: nobody waits
}

const (
	taken  = 1 << iota // a goroutine has the slot, or it is kept for a waiter
	waited             // there are waiters
)

// maxLost is how often a waiter may wake and find the slot taken again. After that Release
// keeps the slot for it. This costs the time of a switch between goroutines, during which
// no goroutine uses the slot.
const maxLost = 4

type waiter struct {
	next  *waiter       // behind it; behind the last, the first
	wake  chan struct{} // holds one wake-up
	lost  int           // how often it woke and found the slot taken
	in    bool          // Release has given it the slot
	first bool          // it is at the head of the line and gets the slot at the next Release
}

// Acquire waits until the caller has the slot. It returns the cause of ctx if ctx ends
// first, and [net.ErrClosed] if life ends first. Life may be nil.
func (s *Slot) Acquire(ctx context.Context, life *Context) error {
	if s.TryAcquire() {
		return nil
	}
	return s.await(ctx, life, &waiter{wake: make(chan struct{}, 1)})
}

// AcquireFirst is Acquire from the head of the line.
func (s *Slot) AcquireFirst(ctx context.Context, life *Context) error {
	if s.TryAcquire() {
		return nil
	}
	return s.await(ctx, life, &waiter{wake: make(chan struct{}, 1), first: true})
}

// TryAcquire takes the slot if it is free, and reports whether it did.
func (s *Slot) TryAcquire() bool {
	for {
		state := s.state.Load()
		if state&taken != 0 {
			return false
		}
		if s.state.CompareAndSwap(state, state|taken) {
			return true
		}
	}
}

// Release frees the slot and wakes the first waiter.
func (s *Slot) Release() {
	if s.state.CompareAndSwap(taken, 0) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil { // the last waiter has given up meanwhile
		s.state.Store(0)
		return
	}
	w := s.last.next
	if w.first || w.lost >= maxLost {
		w.in = true // and the slot stays taken
		s.remove(w)
	} else {
		s.state.Store(waited)
	}
	w.notify()
}

func (w *waiter) notify() {
	select {
	case w.wake <- struct{}{}:
	default: // the last wake-up is still unread
	}
}

// await joins the line and waits until w has the slot.
func (s *Slot) await(ctx context.Context, life *Context, w *waiter) error {
	if s.join(w) {
		return nil
	}
	var over <-chan struct{}
	if life != nil {
		over = life.Done()
	}
	for {
		select {
		case <-w.wake:
			if s.retry(w) {
				return nil
			}
		case <-ctx.Done():
			s.leave(w)
			return context.Cause(ctx)
		case <-over:
			s.leave(w)
			return net.ErrClosed
		}
	}
}

// join puts w into the line, and reports whether w has the slot already.
func (s *Slot) join(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.next = w
	if s.last != nil {
		w.next, s.last.next = s.last.next, w
	}
	if s.last == nil || !w.first {
		s.last = w
	}
	s.state.Or(waited)
	return s.take(w)
}

// retry reports whether w, which has been woken, has the slot now.
func (s *Slot) retry(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.in || s.take(w) {
		return true
	}
	w.lost++
	return false
}

// take gives w the slot if it is free, and reports whether it did. The caller holds mu.
func (s *Slot) take(w *waiter) bool {
	if !s.TryAcquire() {
		return false
	}
	s.remove(w)
	return true
}

// remove takes w out of the line. The caller holds mu.
func (s *Slot) remove(w *waiter) {
	before := s.last
	for before != nil && before.next != w {
		if before = before.next; before == s.last {
			return // w is not in the line
		}
	}
	switch {
	case before == w:
		s.last = nil
	case before != nil:
		before.next = w.next
		if s.last == w {
			s.last = before
		}
	}
	if s.last == nil {
		s.state.And(^uint32(waited))
	}
}

// leave ends w's wait. It passes a slot or a wake-up that w has got meanwhile to the next.
func (s *Slot) leave(w *waiter) {
	s.mu.Lock()
	in := w.in
	if !in {
		s.remove(w)
	}
	next := !in && s.last != nil && s.state.Load()&taken == 0
	if next { // w may have got the only wake-up
		s.last.next.notify()
	}
	s.mu.Unlock()
	if in {
		s.Release()
	}
}
