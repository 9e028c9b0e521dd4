package reconnect

import (
	"context"
	"sync"
	"time"
)

// State is what a [Conn] is doing.
type State uint8

// The states. From each of the others a Conn can go to StateClosed, where it
// stays.
const (
	StateConnecting State = iota // at the gate, or dialling
	StateOpening                 // connected; OnSession is at work
	StateReady                   // of use
	StateWaiting                 // before the next try
	StateClosed                  // for good
)

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"connecting", "opening", "ready", "waiting", "closed"}

// Status is a snapshot of a [Conn].
type Status struct {
	State   State
	Since   time.Time // when it entered that state
	Session uint64    // the present session, or the last; 0: none yet
	Try     int       // tries since the last stable session, or the start
	Next    time.Time // StateWaiting: when the wait is over, if nothing cuts it short
	Err     error     // why the last try or session ended; StateClosed: as [Conn.Err]
}

// State returns the present state.
func (c *Conn) State() State { return c.Status().State }

// Status returns a snapshot. It is never older than an event that the caller has
// already heard of from elsewhere.
func (c *Conn) Status() Status {
	s := *c.status.Load()
	if s.State == StateReady && c.live.Load() == nil {
		s.State = StateWaiting // lost, and the supervisor will notice in a moment
		if l := c.link.Load(); l.n == s.Session {
			s.Err = l.why(s.Err)
		}
	}
	return s
}

// Await waits until the state is s, and returns nil at once if it is. The newest
// state is always seen; one that is left again quickly may be skipped. It ends
// with the cause of ctx, or with [Conn.Err] if the Conn is closed.
func (c *Conn) Await(ctx context.Context, s State) error {
	for c.State() != s {
		changed := c.changed.wait()
		switch c.State() {
		case s:
			return nil
		case StateClosed:
			return c.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// enter publishes a new status. Only the supervisor's goroutine calls it.
func (c *Conn) enter(state State, edit func(*Status)) {
	next := *c.status.Load()
	next.State, next.Since, next.Next = state, time.Now(), time.Time{}
	if edit != nil {
		edit(&next)
	}
	c.status.Store(&next)
	c.changed.broadcast()
}

// signal wakes everyone who waits for it. Its zero value is ready, and costs
// nothing while nobody does.
type signal struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// wait returns a channel that is closed at the next broadcast.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
