package reconnect

import (
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// Session is one connection of a [Run] or a [Conn], from its dial to its loss. Its exported fields do
// not change.
type Session struct {
	Number   uint64        // counts the sessions of a Run, from 1 on
	Name     string        // RunOptions.Name
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // from the loss of the last ready session, or from the start, to this dial's success

	start link.Instant
	hooks *hooks

	mu      sync.Mutex // guards what follows
	isReady bool
	over    bool
	ready   link.Instant          // when it became ready, if it did
	leave   func(backoff.Verdict) // gives the place at the gate back; nil: there is none; set before the dial
}

// Ready says that the session is of use, for instance logged in and subscribed. When it has been ready
// for long enough (see [RunOptions.StableAfter]) the next wait is a first one again. Ready gives the
// place at the gate back, and calls [Trace.SessionReady]. Any goroutine may call it. Calls after the
// first, and after the end of the session, do nothing. For a Conn the supervisor calls it.
func (s *Session) Ready() {
	s.mu.Lock()
	first := !s.isReady && !s.over
	if first {
		s.isReady, s.ready = true, link.Now()
	}
	s.mu.Unlock()
	if first {
		s.leaveGate(backoff.Verdict{})
		call(s.hooks.Load().SessionReady, s)
	}
}

// end ends the session, and returns when it became ready, if it ever did.
func (s *Session) end() (link.Instant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.ready, s.isReady
}

// leaveGate reports to the gate how the dial went. Calls after the first do nothing.
func (s *Session) leaveGate(v backoff.Verdict) {
	s.mu.Lock()
	leave := s.leave
	s.leave = nil
	s.mu.Unlock()
	if leave != nil {
		leave(v)
	}
}
