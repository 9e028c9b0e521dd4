package subscription

import (
	"context"
	"errors"
	"fmt"
)

// State is the state of a key in the newest session that is ready.
type State uint8

// The states.
const (
	StateNone     State = iota // not wanted, and no session holds the key
	StateWaiting               // wanted; the key waits for a session, or for its turn
	StateAsked                 // wanted; the request waits for its answer
	StateHeld                  // wanted, and the venue has agreed
	StateRejected              // wanted; the venue has refused or not answered, and is asked again
	StateDropped               // wanted, but given up: see [DecisionDrop]
	StateLeaving               // not wanted, but a session may hold the key until the venue has answered
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

// errTime is the error of a wait whose context has ended. missing counts the keys that were not
// settled; 0: no session was ready.
func errTime(ctx context.Context, missing int) error {
	if missing == 0 {
		return fmt.Errorf("subscription: no session is ready: %w", context.Cause(ctx))
	}
	return fmt.Errorf("subscription: %d keys not settled: %w", missing, context.Cause(ctx))
}

var errInCallback = errors.New("subscription: cannot wait in a callback of the Conn, because no answer is received while it runs")

// State returns the state of a key.
func (s *Set[K]) State(k K) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(s.entries[k])
}

// state returns the state of an entry, which may be nil. The caller holds mu.
func (s *Set[K]) state(e *entry[K]) State {
	switch {
	case e == nil:
		return StateNone
	case e.refs == 0 && e.idle():
		return StateNone
	case e.refs == 0:
		return StateLeaving
	case !e.wanted():
		return StateDropped
	}
	p := place[K]{}
	if s.lead != nil {
		p = e.at[s.lead.slot]
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

// Wait waits until the newest session that is ready holds the key. It returns one of these errors:
//
//   - a *[RejectedError] when the venue has refused the key. If that has happened before, and the key
//     is not asked for again yet, Wait returns at once. The Set asks for the key again all the same.
//   - [ErrNotWanted] if the key is not wanted, or is removed meanwhile.
//   - an error that wraps the cause of ctx when ctx ends.
//   - the error of the Conn when the Conn ends.
//   - an error at once in a callback of the Conn, with the context of the callback.
//
// Wait works in the goroutine that reads the messages of the Conn, because answers are read before
// messages go to the inbox. Exception: when the inbox is full and blocks, no answer is read until a
// message is taken out. So read in another goroutine while you wait, or give ctx an end. See also
// Options.Timeout.
func (s *Set[K]) Wait(ctx context.Context, k K) error {
	return s.await(ctx, func() (bool, int, error) {
		e := s.entries[k]
		switch state := s.state(e); state {
		case StateHeld:
			return true, 0, nil
		case StateNone, StateLeaving:
			return true, 0, ErrNotWanted
		case StateDropped:
			return true, 0, e.trouble.dropped
		case StateRejected:
			if e.trouble.err != nil && !e.trouble.judging {
				return true, 0, e.trouble.rejected()
			}
		}
		return false, 1, nil
	})
}

// Synced waits until the newest session that is ready holds all wanted keys, and no session holds
// another key. It returns a *[RejectedError] if all missing keys were refused or given up. Wait
// describes the other errors, and the limit of calls in the goroutine that reads.
func (s *Set[K]) Synced(ctx context.Context) error {
	return s.await(ctx, func() (bool, int, error) {
		open, refused := 0, 0
		for _, b := range s.books {
			if b.ready {
				open, refused = open+b.open, refused+b.refused
			}
		}
		switch {
		case s.lead == nil || open > 0:
			return false, open, nil
		case refused > 0:
			return true, 0, s.rejected()
		}
		return true, 0, nil
	})
}

// rejected returns the error for all rejected keys. The caller holds mu.
func (s *Set[K]) rejected() error {
	all := &RejectedError{}
	for _, e := range s.entries {
		t := e.trouble
		if t == nil || !t.resting && t.dropped == nil {
			continue
		}
		if r := t.rejected(); all.Keys == 0 || r.Session > all.Session {
			all.Session, all.Tries, all.Err = r.Session, r.Tries, r.Err
		}
		all.Keys++
	}
	return all
}

// rejected returns why the key was given up, or was refused last.
func (t *trouble) rejected() *RejectedError {
	if t.dropped != nil {
		return t.dropped
	}
	return &RejectedError{Keys: 1, Session: t.session, Tries: t.tries, Err: t.err}
}

// await calls look, with the lock, until look reports that there is nothing to wait for. Between two
// calls it waits for a change.
func (s *Set[K]) await(ctx context.Context, look func() (done bool, missing int, err error)) error {
	for {
		s.mu.Lock()
		done, missing, err := look()
		over, cause, c := s.over, s.err, s.conn
		if s.changed == nil && !done && !over {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		if s.lead == nil {
			missing = 0
		}
		s.mu.Unlock()
		switch {
		case over:
			return fmt.Errorf("subscription: %w", cause)
		case done:
			return err
		case ctx.Err() != nil:
			return errTime(ctx, missing)
		case c != nil && c.InCallback(ctx):
			return errInCallback
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errTime(ctx, missing)
		}
	}
}
