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
	t.mu.Unlock()
	f()
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

// Stopped reports whether Stop was called.
func (t *Timer) Stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// Wait waits until the running call, if any, has returned. Call it after Stop.
func (t *Timer) Wait() { t.running.Wait() }
