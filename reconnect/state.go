package reconnect

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/outbox"
)

// State is what a [Conn] is doing.
type State uint8

// The states of a [Conn].
const (
	StateConnecting State = iota // dialing, or waiting at the gate
	StateOpening                 // connected; OnSession runs
	StateReady                   // messages are received and sent
	StateWaiting                 // waiting before the next dial
	StateClosed                  // ended for good
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
	State    State
	AtGate   bool          // in StateConnecting: waiting at the gate, not dialing yet
	Rotating bool          // a rotation is in progress
	Verdict  backoff.Class // class of the verdict on Err; ClassOK if none
	Since    time.Time     // when it entered State
	Session  uint64        // the current session, or the last; 0 if none yet
	Try      int           // dials since the last stable session, or since the start, as of the last failure
	Next     time.Time     // in StateWaiting: when the next dial begins, unless the wait is cut short; else zero

	// Err is why the last dial failed or session ended; a *budget.LoginError while the next dial waits
	// for a login; nil once a session is ready; in StateClosed as [Conn.Err].
	Err error

	// Outlook is nil, or says why the Conn waits at a [budget.Gate] whose host is down: the error of the
	// last dial, when the next probe begins, and which Conn makes it.
	Outlook *budget.Outlook

	host string // the host for which it waits at the gate, with AtGate
}

// state publishes the newest Status.
type state struct {
	status atomic.Pointer[Status] // written under mu
	life   *lifetime
	link   atomic.Pointer[served] // the present connection, or the last; written under mu

	mu   sync.Mutex // guards what follows
	lead *seat      // whose status is published
}

// seat is the place of one supervisor in the state. Only the status of the seat that leads is published.
type seat struct {
	link   atomic.Pointer[served] // the supervisor's present connection, or its last
	shadow *Status                // the status that counts if the seat comes to lead; guarded by state.mu
}

func (s *state) start(life *lifetime, lead *seat) {
	s.life, s.lead = life, lead
	s.status.Store(&Status{State: StateConnecting, Since: time.Now()})
}

// enter publishes that x has entered a state, if x leads.
func (s *state) enter(x *seat, state State, edit func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edit(x, func(next *Status) {
		next.State, next.Since, next.Next, next.AtGate = state, time.Now(), time.Time{}, false
		if edit != nil {
			edit(next)
		}
	})
}

// edit changes the status of x, and publishes it if x leads. A seat that led before and does not
// lead now has no status. The caller holds mu.
func (s *state) edit(x *seat, edit func(*Status)) {
	if s.lead != x {
		if x.shadow != nil {
			edit(x.shadow)
		}
		return
	}
	next := *s.status.Load()
	edit(&next)
	s.status.Store(&next)
	s.life.Changed.Broadcast()
}

// connecting publishes that x dials, or waits at the gate for host.
func (s *state) connecting(x *seat, atGate bool, host string) {
	if !atGate {
		host = ""
	}
	s.mu.Lock()
	now := *s.status.Load()
	if s.lead != x {
		now = *x.shadow
	}
	s.mu.Unlock()
	if now.State != StateConnecting || now.AtGate != atGate || now.host != host { // only x changes it
		s.enter(x, StateConnecting, func(s *Status) { s.AtGate, s.host = atGate, host })
	}
}

// opening publishes that the session of x, by l, begins. Its link and its number change under one lock,
// because x may come to lead before or after that: see inherit. If x leads, opening calls began under the lock.
func (s *state) opening(x *seat, l *served, began func()) {
	s.enter(x, StateOpening, func(st *Status) {
		st.Session = l.Session
		if s.lead == x {
			s.link.Store(l)
			began()
		}
	})
}

// setReady publishes that the session of x, by l, is ready.
func (s *state) setReady(x *seat, l *served) {
	s.enter(x, StateReady, func(st *Status) { st.Err, st.Verdict = nil, backoff.ClassOK })
}

// rotating publishes that next makes another session beside the present one.
func (s *state) rotating(next *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edit(s.lead, func(st *Status) { st.Rotating = true })
	shadow := *s.status.Load()
	next.shadow = &shadow
	shadow.State, shadow.Since, shadow.Try = StateConnecting, time.Now(), 0
}

// rotated publishes that there is one session again. It calls note under the lock.
func (s *state) rotated(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note()
	s.edit(s.lead, func(st *Status) { st.Rotating = false })
}

// succeed makes x lead, whose session by l is ready. It calls attach under the lock, which lets
// messages be written by l: so [Conn.Rotate] sees both or neither.
func (s *state) succeed(x *seat, l *served, attach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attach()
	s.lead = x
	s.link.Store(l)
	s.edit(s.lead, func(st *Status) {
		st.State, st.Since, st.Next, st.AtGate = StateReady, time.Now(), time.Time{}, false
		st.Session, st.Try, st.Err, st.Verdict = l.Session, x.shadow.Try, nil, backoff.ClassOK
	})
	x.shadow = nil
}

// inherit makes x lead, whose session is not ready yet: the session before was lost because of err, and
// verdict is the class of the verdict on err.
func (s *state) inherit(x *seat, err error, verdict backoff.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lead = x
	if x.shadow.State == StateOpening {
		s.link.Store(x.link.Load())
	}
	s.edit(s.lead, func(st *Status) {
		if *st = *x.shadow; st.Err == nil {
			st.Err, st.Verdict = err, verdict
		}
	})
	x.shadow = nil
}

// now returns newest with Outlook, for which it calls the gate. The caller must hold no lock.
func (s *state) now() Status {
	status := s.newest()
	if status.AtGate {
		status.Outlook = s.life.o.Run.outlook(status.host)
	}
	return status
}

// newest returns the newest status without Outlook. A connection that has just been lost is not ready, even if
// the supervisor does not know of the loss yet.
func (s *state) newest() Status {
	for {
		status := *s.status.Load()
		if status.State != StateReady {
			return status
		}
		l := s.link.Load()
		switch {
		case l.Session != status.Session: // a new status came between
			continue
		case l.Lost():
			status.State, status.Err = StateWaiting, l.Cause(nil)
		}
		return status
	}
}

// refusal returns the reason why nothing can be sent now.
func (s *state) refusal() error {
	status := s.newest()
	err := fmt.Errorf("%w (%v)", ErrNotReady, status.State)
	switch {
	case status.State == StateClosed:
		return outbox.Ended(status.Err)
	case status.Err != nil:
		return outbox.Because(err, status.Err)
	}
	return err
}

// State returns the newest state.
func (c *Conn) State() State { return c.state.newest().State }

// Status returns a snapshot, which reflects every hook and every error of a Write that the caller has
// seen.
func (c *Conn) Status() Status { return c.state.now() }

// Await waits until the state is s. It may miss a state that does not last. It returns an [*AwaitError]
// when ctx is done, or the error of [Conn.Err] if the Conn is closed, unless s is StateClosed.
func (c *Conn) Await(ctx context.Context, s State) error {
	return c.state.await(ctx, s, func(Status) error { return nil })
}

// AwaitReady is Await for StateReady, for a program that should fail at its start if it cannot connect.
// It also returns an [*AwaitError] if the verdict on the last dial or session is ClassSlow, such as
// after a 401. It keeps waiting if the host name does not exist. The Conn continues to redial until
// Close.
func (c *Conn) AwaitReady(ctx context.Context) error {
	return c.state.await(ctx, StateReady, func(s Status) error {
		if !c.life.Closed.Load() && s.Verdict >= backoff.ClassSlow && backoff.ReasonOf(s.Err) != backoff.ReasonDNS {
			return &AwaitError{want: StateReady, Status: s, left: untilDial(s)}
		}
		return nil
	})
}

// await waits for a state. It ends if hopeless returns an error. It makes the channel for the
// wait only if it has to wait.
func (s *state) await(ctx context.Context, want State, hopeless func(Status) error) error {
	var changed <-chan struct{}
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
			changed = s.life.Changed.Wait()
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			status = s.now()
			return &AwaitError{want: want, Status: status, Cause: context.Cause(ctx), left: untilDial(status)}
		}
		changed = nil
	}
}

// AwaitError reports why [Conn.Await] or [Conn.AwaitReady] stopped waiting.
type AwaitError struct {
	Status Status // when the wait ended
	Cause  error  // cause of the context; nil if something has to be fixed first

	want State         // the awaited state
	left time.Duration // until the next dial, or the next probe of the gate; negative: that is not known, or over
}

// untilDial returns the left of an AwaitError.
func untilDial(s Status) time.Duration {
	if s.Outlook != nil {
		return time.Until(s.Outlook.Next)
	}
	return time.Until(s.Next)
}

func (e *AwaitError) Error() string {
	text := fmt.Sprintf("not %v but %v", e.want, e.Status.State)
	if e.Status.AtGate {
		text += " at the gate"
	}
	if e.left > 0 {
		text += fmt.Sprintf(" (the next dial begins in %v)", e.left.Round(time.Second/10))
	}
	for _, err := range e.Unwrap() {
		text += ": " + err.Error()
	}
	return text
}

// Unwrap returns Cause, Status.Err and the Err of Status.Outlook, without those that are nil.
func (e *AwaitError) Unwrap() []error {
	list := []error{e.Cause, e.Status.Err}
	if o := e.Status.Outlook; o != nil {
		list = append(list, o.Err)
	}
	return slices.DeleteFunc(list, func(err error) bool { return err == nil })
}
