package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// State is what a [Conn] is doing.
type State uint8

// The states. From each of the others a Conn can go to StateClosed, where it
// stays.
const (
	StateConnecting State = iota // at the gate, or dialing
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
	AtGate  bool          // StateConnecting: it waits at the gate, and does not dial yet
	Since   time.Time     // when it entered that state
	Session uint64        // the present session, or the last; 0: none yet
	Try     int           // tries since the last stable session, or the start
	Next    time.Time     // StateWaiting: when the wait is over, if nothing cuts it short
	Err     error         // why the last try or session ended; nil once a session is ready; StateClosed: as [Conn.Err]
	Verdict backoff.Class // what [RunOptions.Classify] made of Err; ClassOK if there is none
}

// state is the newest Status, for those who ask and those who wait.
type state struct {
	status  atomic.Pointer[Status] // written by the supervisor
	changed xsync.Signal           // a new status
	link    atomic.Pointer[link]   // the present connection, or the last; written by the supervisor
}

func (s *state) start() { s.status.Store(&Status{State: StateConnecting, Since: time.Now()}) }

// enter publishes a new status. Only the supervisor's goroutine calls it.
func (s *state) enter(state State, edit func(*Status)) {
	next := *s.status.Load()
	next.State, next.Since, next.Next, next.AtGate = state, time.Now(), time.Time{}, false
	if edit != nil {
		edit(&next)
	}
	s.status.Store(&next)
	s.changed.Broadcast()
}

// edit changes the status, but not the state. Only the supervisor's goroutine calls it.
func (s *state) edit(edit func(*Status)) {
	next := *s.status.Load()
	edit(&next)
	s.status.Store(&next)
	s.changed.Broadcast()
}

// now returns the newest status. A connection that was lost a moment ago, of which
// the supervisor has not heard yet, is not ready.
func (s *state) now() Status {
	for {
		status := *s.status.Load()
		if status.State != StateReady {
			return status
		}
		l := s.link.Load()
		switch {
		case l.session != status.Session: // a new status came between
			continue
		case l.lost():
			status.State, status.Err = StateWaiting, l.why(nil)
		}
		return status
	}
}

// change returns channels of which one is closed when the status changes.
func (s *state) change() (changed, lost <-chan struct{}) {
	changed = s.changed.Wait()
	if l := s.link.Load(); l != nil && !l.Ended() {
		lost = l.Done()
	}
	return changed, lost
}

// refusal returns why nothing can be sent now.
func (s *state) refusal() error {
	status := s.now()
	err := fmt.Errorf("%w (%v)", ErrNotReady, status.State)
	switch {
	case status.State == StateClosed:
		return net.ErrClosed
	case status.Err != nil:
		return because(err, status.Err)
	}
	return err
}

// State returns the present state.
func (c *Conn) State() State { return c.state.now().State }

// Status returns a snapshot. It is never older than an event that the caller has
// already heard of from elsewhere.
func (c *Conn) Status() Status { return c.state.now() }

// Await waits until the state is s, and returns nil at once if it is. The newest
// state is always seen; one that is left again quickly may be skipped. It ends
// with an [*AwaitError] when ctx does, or with [Conn.Err] if the Conn is closed.
func (c *Conn) Await(ctx context.Context, s State) error {
	return c.state.await(ctx, s, func(Status) error { return nil })
}

// AwaitReady is Await for StateReady, but does not wait where somebody has to mend
// something first: when the last try or session was judged Slow (the server
// answered 401 or 404, its certificate does not verify) it returns an [*AwaitError]
// with that. The Conn goes on redialing; Close ends it. A program that should fail
// at its start if its first connection cannot come about calls this, with a context
// that bounds the wait for a server that is merely away.
func (c *Conn) AwaitReady(ctx context.Context) error {
	return c.state.await(ctx, StateReady, func(s Status) error {
		if s.Verdict >= backoff.ClassSlow {
			return &AwaitError{Want: StateReady, Status: s}
		}
		return nil
	})
}

// await waits for a state, unless hopeless returns an error. It makes the channels for
// that only if it has to wait.
func (s *state) await(ctx context.Context, want State, hopeless func(Status) error) error {
	var changed, lost <-chan struct{}
	for {
		status := s.now()
		switch err := hopeless(status); {
		case status.State == want:
			return nil
		case status.State == StateClosed:
			return status.Err
		case err != nil:
			return err
		}
		if changed == nil { // look once more, now that no change can be missed
			changed, lost = s.change()
			continue
		}
		select {
		case <-changed:
		case <-lost:
		case <-ctx.Done():
			return &AwaitError{Want: want, Status: s.now(), Cause: context.Cause(ctx)}
		}
		changed, lost = nil, nil
	}
}

// AwaitError is why a state was not awaited. It unwraps to Cause and to
// Status.Err.
type AwaitError struct {
	Want   State
	Status Status // at that time
	Cause  error  // why the context ended; nil: it did not, but somebody has to mend something
}

func (e *AwaitError) Error() string {
	text := fmt.Sprintf("not %v but %v", e.Want, e.Status.State)
	if e.Status.AtGate {
		text += " (at the gate)"
	}
	for _, err := range e.Unwrap() {
		text += ": " + err.Error()
	}
	return text
}

// Unwrap returns Cause and Status.Err, as far as they are not nil.
func (e *AwaitError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Cause, e.Status.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Timeout reports whether Cause is a deadline.
func (e *AwaitError) Timeout() bool { return errors.Is(e.Cause, context.DeadlineExceeded) }
