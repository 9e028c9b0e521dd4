package xsync

import "sync/atomic"

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
