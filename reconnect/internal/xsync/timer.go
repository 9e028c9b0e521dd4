package xsync

import (
	"sync"
	"time"
)

// Timer calls a function after a time. The function may set the timer again. At most one
// call runs at a time. After Stop no call begins.
type Timer struct {
	running sync.WaitGroup // one while a call is due, and one while it runs

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	due     bool
	calling bool // f runs
	again   bool // f is to be called again when it has returned
	stopped bool
}

// Set arranges a call of f after d. It replaces the call that is due, if there is one. F
// must be the same function each time.
func (t *Timer) Set(d time.Duration, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopped:
		return
	case t.timer == nil:
		t.timer = time.AfterFunc(d, func() { t.ring(f) })
	case t.due && !t.timer.Stop():
		return // ring has begun
	default:
		t.timer.Reset(d)
	}
	if !t.due {
		t.due = true
		t.running.Add(1)
	}
}

func (t *Timer) ring(f func()) {
	defer t.running.Done()
	t.mu.Lock()
	t.due = false
	if t.calling || t.stopped {
		t.again = true // without effect after Stop
		t.mu.Unlock()
		return
	}
	t.calling = true
	t.mu.Unlock()
	for again := true; again; {
		func() {
			defer func() { again = t.called() }() // even if f does not return
			f()
		}()
	}
}

// called notes that a call has ended, and reports whether another one follows at once.
func (t *Timer) called() (again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	again, t.again = t.again && !t.stopped, false
	t.calling = again
	return again
}

// Stop prevents further calls. It does not wait for a call that runs: see Wait.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.due && t.timer.Stop() {
		t.due = false
		t.running.Done()
	}
}

// Calling reports whether a call runs.
func (t *Timer) Calling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calling
}

// Stopped reports whether Stop was called.
func (t *Timer) Stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// Wait waits until the running call, if any, has returned. Call it after Stop.
func (t *Timer) Wait() { t.running.Wait() }
