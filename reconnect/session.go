package reconnect

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// Session is one connection of a [Run] or a [Conn], from its dial to its loss. Its exported fields do
// not change.
type Session struct {
	Number   uint64        // from 1
	Name     string        // RunOptions.Name
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // from the loss of the last ready session, or from the start, to this dial's success

	start  link.Instant
	hooks  *hooks
	calls  *watch.Calls        // those of the supervisor, or nil for a Run once the session has begun
	logins *budget.Logins      // nil: there is no limit
	login  atomic.Int32        // loginDue, loginTaken or loginSpared
	header map[string][]string // of the handshake's response, until the session is opened; belongs to the supervisor

	mu      sync.Mutex // guards what follows
	isReady bool
	over    bool
	ready   link.Instant                 // when it became ready, if it did
	leave   func(backoff.Verdict, error) // gives the place at the gate back; nil: there is none; set before the dial
	release func()                       // ends the reservation of a login; nil: there is none; set before the session
}

// Ready says that the session is usable, such as logged in and subscribed. Ready releases the gate's
// slot, and calls [Trace.SessionReady]. It is safe for concurrent use. Calls after the first, and after
// the end of the session, do nothing. For a Conn the supervisor calls it.
func (s *Session) Ready() {
	s.mu.Lock()
	first := !s.isReady && !s.over
	if first {
		s.isReady, s.ready = true, link.Now()
	}
	s.mu.Unlock()
	if first {
		s.leaveGate(backoff.Verdict{}, nil)
		if hook := s.hooks.Load().SessionReady; hook != nil {
			s.timed(&hookNames.SessionReady, func() { hook(s) })
		}
	}
}

// timed calls f, which is the user's function name, and times it. For a Run any goroutine may do so.
func (s *Session) timed(name *string, f func()) {
	if s.calls == nil {
		watch.Time(s.hooks, watch.SlowAfter, *name, nil, f)
		return
	}
	outer := s.calls.Enter(name)
	f()
	s.calls.Leave(outer) // not if f has ended the goroutine: see keeper.abandon
}

// Login takes a login from [RunOptions.Logins], before serve logs in. One goroutine at a time may call
// it. If no login is left the error is a [*budget.LoginError]: return it from serve. Calls after one
// that returned nil, and without Logins, do nothing. For a Conn, [Opening.Write] calls it.
func (s *Session) Login(ctx context.Context) error {
	if s.logins == nil || s.login.Load() != loginDue {
		return nil
	}
	err := s.logins.Take(ctx)
	if err == nil {
		s.login.Store(loginTaken)
		s.freeLogin()
	}
	return err
}

// These are the values of Session.login.
const (
	loginDue    = iota // the session has not logged in
	loginTaken         // it has taken a login from the budget
	loginSpared        // it needs none
)

// end ends the session, and returns when it became ready, if it ever did.
func (s *Session) end() (link.Instant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.ready, s.isReady
}

// leaveGate reports to the gate how the dial went, and why, and ends the reservation of a login. Calls after the
// first do nothing.
func (s *Session) leaveGate(v backoff.Verdict, err error) {
	s.mu.Lock()
	leave, release := s.leave, s.release
	s.leave, s.release = nil, nil
	s.mu.Unlock()
	if release != nil {
		release()
	}
	if leave != nil {
		s.timed(&gateDone, func() { leave(v, err) })
	}
}

// freeLogin ends the reservation of a login. Calls after the first do nothing.
func (s *Session) freeLogin() {
	s.mu.Lock()
	release := s.release
	s.release = nil
	s.mu.Unlock()
	if release != nil {
		release()
	}
}
