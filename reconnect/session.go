package reconnect

import (
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Session is one connection of a [Run], as its serve function sees it.
type Session struct {
	N        uint64        // 1 for the first
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // since the last ready session was lost, or since the start

	start time.Time
	trace *Trace

	mu       sync.Mutex // guards what follows
	admitted func(backoff.Verdict)
	ready    time.Time
}

// Ready says that the session is of use: logged in, subscribed. From now on it
// counts as up, and when it has been ready for long enough (see
// [RunOptions.StableAfter]) the next wait is a first one again. Any goroutine may
// call it; calls after the first do nothing.
func (s *Session) Ready() {
	s.mu.Lock()
	first := s.ready.IsZero()
	if first {
		s.ready = time.Now()
	}
	s.mu.Unlock()
	if first {
		s.leave(backoff.Verdict{})
		s.trace.sessionReady(s)
	}
}

func (s *Session) readyAt() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready, !s.ready.IsZero()
}

// leave tells the gate how it went, once.
func (s *Session) leave(v backoff.Verdict) {
	s.mu.Lock()
	done := s.admitted
	s.admitted = nil
	s.mu.Unlock()
	if done != nil {
		done(v)
	}
}
