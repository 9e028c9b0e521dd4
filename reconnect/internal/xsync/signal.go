package xsync

import "sync"

// Signal wakes all goroutines that wait for it.
type Signal struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// Wait returns a channel that the next Broadcast closes.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Broadcast wakes all goroutines that wait now. A later Wait does not see it.
func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
