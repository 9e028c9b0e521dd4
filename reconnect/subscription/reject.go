package subscription

import (
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Rejection is a key to which the venue has not agreed.
type Rejection[K comparable] struct {
	Key     K
	Op      Op     // of the request
	Session uint64 // of the request
	Tries   int    // how often the key was rejected in a row, this time included
	Err     error  // Answer.Err, the error of Encode, [ErrNoAnswer] or [ErrEnded]
}

// Decision is what follows a [Rejection].
type Decision uint8

// The decisions.
const (
	// DecisionRetry asks again after a wait: see Options.Backoff. The wait goes on from session to
	// session, so that a refused key costs each of them little.
	DecisionRetry Decision = iota

	// DecisionDrop gives the key up. No session asks for the key until Add is called with it, or
	// it is removed and wanted again. A key that was not answered may be subscribed all the same,
	// and is removed at the venue. The Tries of that removal count from 1, and its errors do not
	// replace the reason for which the key was given up. After OpUnsubscribe the key counts as
	// released.
	DecisionDrop

	// DecisionRedial ends the session, which is of no use without the key. The next session asks
	// for the key after the same wait as with DecisionRetry, so that a key which is always refused
	// makes no loop of dials. A mark of package backoff on the error counts for the redial:
	// [backoff.Permanent] ends the Conn.
	DecisionRedial
)

func (d Decision) String() string {
	switch d {
	case DecisionRetry:
		return "retry"
	case DecisionDrop:
		return "drop"
	case DecisionRedial:
		return "redial"
	}
	return "unknown"
}

// RejectedError says that keys were refused, or not answered. [Set.Wait] and [Set.Synced] return it,
// and it is the cause of the end of a session after [DecisionRedial].
type RejectedError struct {
	Keys    int    // how many keys
	Session uint64 // by which one of them was rejected last
	Tries   int    // how often it was rejected in a row
	Err     error  // why
}

func (e *RejectedError) Error() string {
	if e.Keys == 1 {
		return fmt.Sprintf("subscription: rejected in session %d: %v", e.Session, e.Err)
	}
	return fmt.Sprintf("subscription: %d keys rejected, one in session %d: %v", e.Keys, e.Session, e.Err)
}

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.Err }

// rejection is a Rejection that waits for the decision.
type rejection[K comparable] struct {
	entry *entry[K]
	op    Op
	err   error
}

// judge decides about the rejections of b. It returns an error if the session is to be ended. It
// calls functions of the user, without the lock.
func (b *book[K]) judge() error {
	s := b.set
	for {
		s.mu.Lock()
		if err := b.failure; err != nil || len(b.rejections) == 0 {
			b.failure = nil
			s.mu.Unlock()
			return err
		}
		x := b.rejections[0]
		b.rejections = b.rejections[1:]
		e, t := x.entry, x.entry.trouble
		if t == nil || !t.judging { // by another session it was accepted, or decided about, meanwhile
			s.mu.Unlock()
			continue
		}
		t.tries++
		r := Rejection[K]{Key: e.key, Op: x.op, Session: b.number, Tries: t.tries, Err: x.err}
		h := backoff.History{N: t.tries - 1, Prev: t.wait, Verdict: backoff.Verdict{Class: backoff.ClassRetry}}
		now := time.Now()
		if t.since.IsZero() {
			t.since = now
		}
		h.Elapsed = now.Sub(t.since)
		s.mu.Unlock()

		b.decide(x, r, h, now)
	}
}

// decide asks for the decision and applies it. If OnReject ends the goroutine, the decision is to
// retry after a minute.
func (b *book[K]) decide(x rejection[K], r Rejection[K], h backoff.History, now time.Time) {
	d, wait := DecisionRetry, time.Minute
	defer func() {
		b.set.mu.Lock()
		defer b.set.mu.Unlock()
		b.apply(x, d, wait, now)
	}()
	d, wait = b.set.decision(r, h)
}

// decision returns what follows r, and how long to wait.
func (s *Set[K]) decision(r Rejection[K], h backoff.History) (Decision, time.Duration) {
	d, class := DecisionRetry, backoff.Classify(r.Err)
	switch {
	case s.o.OnReject != nil:
		d = s.o.OnReject(r)
	case class.Class == backoff.ClassStop:
		d = DecisionDrop
	}
	if d == DecisionDrop {
		return d, 0
	}
	step, ok := s.o.Backoff.Next(h, backoff.Rand())
	if !ok {
		return DecisionDrop, 0
	}
	return d, max(step.Wait, 0) + class.RetryAfter
}

// apply applies a decision. The caller holds mu.
func (b *book[K]) apply(x rejection[K], d Decision, wait time.Duration, now time.Time) {
	s, e := b.set, x.entry
	if e.trouble == nil || !e.trouble.judging { // another session has succeeded while OnReject ran
		return
	}
	s.note(Event[K]{Kind: EventRejected, Session: b.number, Op: x.op, Err: x.err, Decision: d, Wait: wait}, []*entry[K]{e})
	s.uncount(e)
	t := e.trouble
	t.judging, t.err, t.session, t.wait = false, x.err, b.number, wait
	switch needless := (x.op == OpSubscribe) != e.wanted(); {
	case needless:
		e.calm()
	case d == DecisionDrop && x.op == OpSubscribe:
		t.dropped = t.rejected()
		e.calm() // what becomes of its removal is another matter
	case d == DecisionDrop:
		e.calm()
		if p := &e.at[b.slot]; !b.ended {
			p.venue = venueNo
			s.note(Event[K]{Kind: EventReleased, Session: b.number}, []*entry[K]{e})
		}
	default:
		t.resting, t.due = true, now.Add(wait)
		if !slices.Contains(s.resting, e) {
			s.resting = append(s.resting, e)
		}
		if d == DecisionRedial && b.failure == nil {
			b.failure = &RejectedError{Keys: 1, Session: b.number, Tries: t.tries, Err: x.err}
		}
	}
	s.recount(e)
	s.kick()
}

// rouse lets the keys be asked for whose wait is over. The caller holds mu.
func (s *Set[K]) rouse(now time.Time) {
	s.resting = slices.DeleteFunc(s.resting, func(e *entry[K]) bool {
		if s.entries[e.key] != e || !e.rests() {
			return true
		}
		if now.Before(e.trouble.due) {
			return false
		}
		s.uncount(e)
		e.trouble.resting = false
		s.recount(e)
		return true
	})
	if len(s.resting) == 0 {
		s.resting = nil
	}
}

// due returns when the first of the keys that wait is asked for again, the zero time if there
// is none. The caller holds mu.
func (s *Set[K]) due() (first time.Time) {
	for _, e := range s.resting {
		if e.rests() {
			first = earlier(first, e.trouble.due)
		}
	}
	return first
}
