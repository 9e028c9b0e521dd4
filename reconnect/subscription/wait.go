package subscription

import (
	"context"
	"errors"
	"fmt"
)

// State is the state of a key in the newest ready session.
type State uint8

// The states.
const (
	StateNone     State = iota // not wanted, and no session holds the key
	StateWaiting               // wanted, and waiting for a session or for its turn
	StateAsked                 // wanted, and requested but not answered
	StateHeld                  // wanted, and agreed by the venue
	StateRejected              // wanted, but refused or not answered; is requested again
	StateDropped               // wanted, but given up: see [DecisionDrop]
	StateLeaving               // not wanted, but a session may still hold it
)

func (s State) String() string {
	names := [...]string{"none", "waiting", "asked", "held", "rejected", "dropped", "leaving"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// ErrNotWanted is the error of [Set.Wait] for a key that was not added, or was removed.
var ErrNotWanted = errors.New("subscription: the key is not wanted")

var errInCallback = errors.New("subscription: cannot wait in a callback of the Conn, because no answer is received while it runs: wait in another goroutine")

// State returns the state of a key.
func (s *Set[K]) State(k K) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(s.entries[k])
}

// state returns the state of an entry, which may be nil. The caller holds mu.
func (s *Set[K]) state(e *entry[K]) State {
	switch {
	case e == nil: // there is no idle entry
		return StateNone
	case e.refs == 0:
		return StateLeaving
	case !e.wanted():
		return StateDropped
	}
	p := place[K]{}
	if b := s.lead(); b != nil {
		p = e.at[b.slot]
	}
	switch {
	case p.request != nil && p.request.state > phaseMade:
		return StateAsked
	case p.request == nil && p.venue == venueYes:
		return StateHeld
	case e.blocked():
		return StateRejected
	}
	return StateWaiting
}

// Wait waits until the newest ready session holds the key. It returns one of these errors:
//
//   - a *[RejectedError] if the venue has refused the key, immediately if the key waits for its next request.
//     The Set requests it again nevertheless.
//   - [ErrNotWanted] if the key is not wanted, or is removed meanwhile.
//   - an error that wraps the cause of ctx if ctx is done.
//   - the error of the Conn when the Conn ends.
//   - an error immediately in a callback of the Conn, with the callback's context.
//
// Wait may be called in the goroutine that reads from the Conn, because answers bypass the inbox. But while
// the inbox is full and blocks, no answer is read: then read in another goroutine, or give ctx a deadline.
func (s *Set[K]) Wait(ctx context.Context, k K) error {
	return s.await(ctx, func() (bool, error) {
		e := s.entries[k]
		switch state := s.state(e); state {
		case StateHeld:
			return true, nil
		case StateNone, StateLeaving:
			return true, ErrNotWanted
		case StateDropped:
			return true, e.trouble.dropped
		case StateRejected:
			if e.trouble.err != nil && !e.trouble.judging {
				return true, e.trouble.rejected()
			}
		}
		return false, nil
	})
}

// Synced waits until the newest ready session holds all wanted keys, and no session holds another. It returns
// a *[RejectedError] if all missing keys were refused or given up. Otherwise it is like [Set.Wait].
func (s *Set[K]) Synced(ctx context.Context) error {
	return s.await(ctx, func() (bool, error) {
		open, refused := s.missing()
		switch {
		case s.lead() == nil || open > 0:
			return false, nil
		case refused > 0:
			return true, s.rejected()
		}
		return true, nil
	})
}

// missing returns how many keys are not settled in the sessions that are ready, and how many are
// refused there. The caller holds mu.
func (s *Set[K]) missing() (open, refused int) {
	for _, b := range s.books {
		if b.ready {
			open, refused = open+b.open, refused+b.refused
		}
	}
	return open, refused
}

// rejected returns the error for all rejected keys. The caller holds mu.
func (s *Set[K]) rejected() error {
	all := &RejectedError{}
	for _, e := range s.entries {
		t := e.trouble
		if t == nil || !e.rests() && t.dropped == nil {
			continue
		}
		if r := t.rejected(); all.keys == 0 || r.session > all.session {
			all.Err, all.session = r.Err, r.session
		}
		all.keys++
	}
	return all
}

// rejected returns why the key was given up, or was refused last.
func (t *trouble) rejected() *RejectedError {
	if t.dropped != nil {
		return t.dropped
	}
	return &RejectedError{Err: t.err, keys: 1, session: t.session}
}

// await calls look, with the lock, until look reports that there is nothing to wait for. Between two
// calls it waits for a change.
func (s *Set[K]) await(ctx context.Context, look func() (done bool, err error)) error {
	for {
		changed := s.changed.Wait() // before the look, so that no change is missed
		s.mu.Lock()
		done, err := look()
		over, cause, c := s.over, s.err, s.conn
		ready := s.lead() != nil
		open, _ := s.missing()
		s.mu.Unlock()
		switch {
		case over:
			return fmt.Errorf("subscription: %w", cause)
		case done:
			return err
		case c != nil && c.InCallback(ctx):
			return errInCallback
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		}
		if !ready {
			return fmt.Errorf("subscription: no session is ready: %w", context.Cause(ctx))
		}
		return fmt.Errorf("subscription: %d keys are not settled: %w", open, context.Cause(ctx))
	}
}
