package xsync

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Slot lets one goroutine in at a time. Unlike a mutex it can be waited for with a
// context. Like a mutex it is quick before it is fair: a goroutine that leaves and
// comes back may be ahead of one that waits, but no more than maxLost times.
type Slot struct {
	state atomic.Uint32 // taken, waited

	mu      sync.Mutex // guards what follows; never held while waiting
	waiting []*waiter  // in the order in which they get in
}

const (
	taken  = 1 << iota // somebody is in, or the place is promised to a waiter
	waited             // there are waiters
)

// maxLost is how often a waiter finds the place taken again when it was woken,
// before the place is kept for it. A waiter that is let in this way costs the time
// of a switch between goroutines, in which nobody is in.
const maxLost = 4

type waiter struct {
	wake  chan struct{} // has room for one wake-up
	lost  int           // how often it was woken in vain
	in    bool          // it has been let in, by the one that left
	first bool          // it goes ahead of others and is not raced
}

// Acquire waits until the caller is in. It returns the cause of ctx if that ends
// first, and [net.ErrClosed] if life does, which may be nil.
func (s *Slot) Acquire(ctx context.Context, life *Context) error {
	if s.TryAcquire() {
		return nil
	}
	return s.await(ctx, life, &waiter{wake: make(chan struct{}, 1)})
}

// AcquireFirst is Acquire, ahead of all that wait.
func (s *Slot) AcquireFirst(ctx context.Context, life *Context) error {
	if s.TryAcquire() {
		return nil
	}
	return s.await(ctx, life, &waiter{wake: make(chan struct{}, 1), first: true})
}

// TryAcquire reports whether the caller is in, which needs nobody else to be.
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

// Release lets the next one in.
func (s *Slot) Release() {
	if s.state.CompareAndSwap(taken, 0) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 { // the last one has given up meanwhile
		s.state.Store(0)
		return
	}
	w := s.waiting[0]
	if w.first || w.lost >= maxLost {
		w.in = true // and the place stays taken
		s.remove(w)
	} else {
		s.state.Store(waited)
	}
	w.notify()
}

func (w *waiter) notify() {
	select {
	case w.wake <- struct{}{}:
	default: // it has not seen the last one yet
	}
}

// await waits in line.
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

// join puts w into the line, and reports whether it is in already.
func (s *Slot) join(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.first {
		s.waiting = slices.Insert(s.waiting, 0, w)
	} else {
		s.waiting = append(s.waiting, w)
	}
	s.state.Or(waited)
	return s.take(w)
}

// retry reports whether w, which was woken, is in.
func (s *Slot) retry(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.in || s.take(w) {
		return true
	}
	w.lost++
	return false
}

// take lets w in if nobody is. The lock is held.
func (s *Slot) take(w *waiter) bool {
	if !s.TryAcquire() {
		return false
	}
	s.remove(w)
	return true
}

// remove takes w out of the line. The lock is held.
func (s *Slot) remove(w *waiter) {
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	if len(s.waiting) == 0 {
		s.state.And(^uint32(waited))
	}
}

// leave is the end of w's wait. What w was given meanwhile goes to the next.
func (s *Slot) leave(w *waiter) {
	s.mu.Lock()
	in := w.in
	if !in {
		s.remove(w)
	}
	next := !in && len(s.waiting) > 0 && s.state.Load()&taken == 0
	if next { // w may have been woken, and nobody else was
		s.waiting[0].notify()
	}
	s.mu.Unlock()
	if in {
		s.Release()
	}
}
