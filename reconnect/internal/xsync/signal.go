package xsync

import (
	"sync"
	"sync/atomic"
)

// Signal wakes all goroutines that wait for it. Broadcast costs next to nothing while none
// waits.
type Signal struct {
	ch atomic.Pointer[chan struct{}] // nil: nobody has called Wait since the last Broadcast
}

// Wait returns a channel that the next Broadcast closes.
func (s *Signal) Wait() <-chan struct{} {
	for {
		if ch := s.ch.Load(); ch != nil {
			return *ch
		}
		ch := make(chan struct{})
		s.ch.CompareAndSwap(nil, &ch)
	}
}

// Broadcast wakes all goroutines that wait now. A later Wait does not see it.
func (s *Signal) Broadcast() {
	if s.ch.Load() == nil {
		return
	}
	if ch := s.ch.Swap(nil); ch != nil {
		close(*ch)
	}
}

// Flag is up or down. Any goroutine may raise it and wait for it; one goroutine lowers it.
type Flag struct {
	mu sync.Mutex    // guards ch
	ch chan struct{} // flag up: the channel raised; else nil, or a channel that Raise will close
}

// raised is the channel of all flags that are up.
var raised = make(chan struct{})

func init() { close(raised) }

// Raise raises the flag.
func (f *Flag) Raise() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ch != nil && f.ch != raised {
		close(f.ch)
	}
	f.ch = raised
}

// IsUp reports whether the flag is up.
func (f *Flag) IsUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ch == raised
}

// Up returns a channel that is closed once the flag is up.
func (f *Flag) Up() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ch == nil {
		f.ch = make(chan struct{})
	}
	return f.ch
}

// Lower lowers the flag and forgets the channel.
func (f *Flag) Lower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ch = nil
}
