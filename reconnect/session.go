package reconnect

import (
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Session is one connection of a [Run], as its serve function sees it.
type Session struct {
	Number   uint64        // 1 for the first
	Name     string        // RunOptions.Name
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // since the last ready session was lost, or since the start

	start time.Time
	trace *Trace

	mu    sync.Mutex // guards what follows
	leave func(backoff.Verdict)
	ready time.Time
	over  bool
}

// Ready says that the session is of use: logged in, subscribed. From now on it
// counts as up, and when it has been ready for long enough (see
// [RunOptions.StableAfter]) the next wait is a first one again. Any goroutine may
// call it; calls after the first, and after the end of the session, do nothing.
func (s *Session) Ready() {
	s.mu.Lock()
	first := s.ready.IsZero() && !s.over
	if first {
		s.ready = time.Now()
	}
	s.mu.Unlock()
	if first {
		s.leaveGate(backoff.Verdict{})
		call(s.trace.SessionReady, s)
	}
}

// readyAt returns when the session was ready, if it ever was.
func (s *Session) readyAt() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready, !s.ready.IsZero()
}

// end ends the session, and returns when it was ready, if it ever was.
func (s *Session) end() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.ready, !s.ready.IsZero()
}

// enterGate notes how to leave the gate.
func (s *Session) enterGate(leave func(backoff.Verdict)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave = leave
}

// leaveGate reports to the gate how the dial went. Calls after the first do
// nothing.
func (s *Session) leaveGate(v backoff.Verdict) {
	s.mu.Lock()
	leave := s.leave
	s.leave = nil
	s.mu.Unlock()
	if leave != nil {
		leave(v)
	}
}
