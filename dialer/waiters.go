package dialer

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// waiters holds the calls of DialContext that have failed at least once and try again, by network and
// address. The zero value is ready for use.
type waiters struct {
	mu     sync.Mutex // guards byAddr; held neither while a call waits nor in user code
	byAddr map[dialAddr][]*waiter
}

// waiter is one of these calls.
type waiter struct {
	to   dialAddr
	kick chan struct{} // ends its wait early; buffered (1)

	waits  bool // between two tries; guarded by waiters.mu
	kicked bool // its wait was ended early, and it has not connected since; guarded by waiters.mu
}

// maxWaiters is the limit on waiters for one address.
const maxWaiters = 8

// join adds x unless maxWaiters other calls wait for its address, and reports whether x is there.
func (w *waiters) join(x *waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.byAddr[x.to]
	switch {
	case slices.Contains(waiting, x):
		return true
	case len(waiting) >= maxWaiters:
		return false
	case w.byAddr == nil:
		w.byAddr = map[dialAddr][]*waiter{}
	}
	w.byAddr[x.to] = append(waiting, x)
	return true
}

// leave removes x if it is there. A kick that has not led to a connection passes to the next call.
func (w *waiters) leave(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.remove(x) && x.kicked {
		w.kickNext(x.to)
	}
}

// remove removes x, and reports whether it was there. The caller must hold mu.
func (w *waiters) remove(x *waiter) bool {
	waiting := w.byAddr[x.to]
	i := slices.Index(waiting, x)
	switch {
	case i < 0:
		return false
	case len(waiting) == 1:
		delete(w.byAddr, x.to)
	default:
		w.byAddr[x.to] = slices.Delete(waiting, i, i+1)
	}
	return true
}

// wait records that x waits from now on, and that a kick, if there was one, has not helped.
func (w *waiters) wait(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.waits, x.kicked = true, false
}

// try records that x tries, and drops a kick that came too late for its wait.
func (w *waiters) try(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.waits = false
	select {
	case <-x.kick: // sent as the wait ended
	default:
	}
}

// with returns the number of waiters for the address of x, including x.
func (w *waiters) with(x *waiter) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.byAddr[x.to]
	if slices.Contains(waiting, x) {
		return len(waiting)
	}
	return len(waiting) + 1
}

// connected removes x, and lets another call try immediately, because a connection to the address was
// made. If that call succeeds the next one follows, so that they connect one at a time.
func (w *waiters) connected(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(x)
	w.kickNext(x.to)
}

// kickNext ends the wait of the first call that waits and was not kicked. The caller must hold mu.
func (w *waiters) kickNext(to dialAddr) {
	for _, x := range w.byAddr[to] {
		if x.waits && !x.kicked {
			x.kicked = true
			x.kick <- struct{}{}
			return
		}
	}
}

// waiterPolicy is the default Policy of a [Dialer] for the call x. While n > 1 calls wait for the
// address, a wait is shorter than n seconds, so that they make about two tries per second together
// whatever n is, and a pool whose connections all wait does not sleep.
type waiterPolicy struct {
	all *waiters
	x   *waiter
}

// Next returns the step of defaultPolicy, with a shorter wait if other calls wait too.
func (p waiterPolicy) Next(h backoff.History, r *rand.Rand) (backoff.Step, bool) {
	step, ok := defaultPolicy.Next(h, r)
	if n := p.all.with(p.x); n > 1 {
		shared := r.Int64N(int64(n) * int64(time.Second))
		step.Wait = min(step.Wait, time.Duration(shared))
	}
	return step, ok
}
