package subscription

import (
	"errors"
	"fmt"
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
	// DecisionRetry requests the key again after a wait, which continues across sessions: see
	// Options.Backoff.
	DecisionRetry Decision = iota

	// DecisionDrop gives the key up until it is added again. After a missing answer it is removed at the venue.
	// The Tries of the removal count from 1, and its errors do not replace the reason for giving up. After a
	// removal (OpUnsubscribe) DecisionDrop counts the key as removed.
	DecisionDrop

	// DecisionRedial ends the session. The next one requests the key after the wait of DecisionRetry. A mark of
	// package backoff on the error counts for the redial: [backoff.Permanent] ends the Conn.
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

// RejectedError reports that keys were refused or not answered. It is returned by [Set.Wait] and [Set.Synced],
// and is the cause of a session ended by [DecisionRedial]. Its text has the session and the number of keys.
type RejectedError struct {
	Err error // reason of the last rejection

	keys    int
	session uint64 // of the last rejection
}

func (e *RejectedError) Error() string {
	if e.keys == 1 {
		return fmt.Sprintf("subscription: rejected in session %d: %v", e.session, e.Err)
	}
	return fmt.Sprintf("subscription: %d keys rejected, one in session %d: %v", e.keys, e.session, e.Err)
}

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.Err }

// rejection is a Rejection that waits for the decision.
type rejection[K comparable] struct {
	entry *entry[K]
	op    Op
	err   error
	named bool // the venue has named the key among those of a request
}

// expire gives up the requests whose answers have not come in time.
func (b *book[K]) expire(now time.Time) {
	for r := b.flow.expire(now); r != nil; r = b.flow.expire(now) {
		keys := b.unanswered(r)
		if len(keys) == 0 { // an answer to an earlier request has settled them
			continue
		}
		b.set.stats.Unanswered++
		b.flow.missed(r, now)
		for _, e := range keys {
			b.settle(e, func(p *place[K]) {
				p.doubt, p.venue = false, venueMaybe
				b.silence(e, r.Op)
			})
		}
	}
}

// asks is how often a key is asked for without an answer until OnReject decides.
const asks = 2

// silence notes that a request for e was not answered. The caller changes e.
func (b *book[K]) silence(e *entry[K], op Op) {
	if b.needless(op, e) {
		return
	}
	t := e.mind()
	if t.silent++; t.silent < asks {
		return
	}
	t.silent = 0
	err := ErrNoAnswer
	if b.nameless {
		err = errNameless
	}
	b.reject(e, op, err, false)
}

// refuseAll notes that the venue has refused a whole request. Several keys are asked for again, in
// requests of half the size. If the venue says how long to wait, b asks for nothing before that.
// Exception: while the session opens the keys are asked for at once, because nothing else would wake b.
func (b *book[K]) refuseAll(op Op, list []*entry[K], err error) {
	if len(list) == 1 {
		b.refuse(op, list, err, false)
		return
	}
	b.divide(list, err)
}

// divide requests the keys of a refused request again, in requests of half the size. The keys of a probe rest.
func (b *book[K]) divide(list []*entry[K], err error) {
	b.pause(backoff.Classify(err).RetryAfter)
	change := func(e *entry[K], f func()) { b.settle(e, func(*place[K]) { f() }) }
	if !errors.Is(err, ErrAlready) && b.set.rest.refused(list, time.Now(), change) {
		return
	}
	for _, e := range list {
		b.settle(e, func(*place[K]) { e.most = int32(len(list)+1) / 2 })
	}
}

// pause has b ask for nothing for so long, or for longer if b pauses already.
func (b *book[K]) pause(d time.Duration) {
	if at := time.Now().Add(d); at.After(b.hold) {
		b.hold = at
	}
}

// refuse notes that the venue has refused each of these keys by itself. named is whether it has named them among
// those of a request.
func (b *book[K]) refuse(op Op, list []*entry[K], err error, named bool) {
	if errors.Is(err, ErrAlready) {
		b.accept(op, list, "")
		return
	}
	for _, e := range list {
		b.set.stats.Refusals++
		b.settle(e, func(p *place[K]) {
			p.doubt, e.most = false, 1
			b.reject(e, op, err, named)
		})
	}
}

// reject lets OnReject decide about e, unless the request is of no use any more. The caller changes e.
func (b *book[K]) reject(e *entry[K], op Op, err error, named bool) {
	if !b.needless(op, e) && !e.mind().judging {
		e.trouble.judging = true
		b.rejections = append(b.rejections, rejection[K]{e, op, err, named})
	}
}

// judge gives up requests without an answer, lets keys be asked for whose wait is over, and decides
// about the rejections of b. It returns an error if the session is to be ended. It calls functions of
// the user, without the lock.
func (b *book[K]) judge() error {
	s, now := b.set, time.Now()
	s.mu.Lock()
	b.expire(now)
	if !b.retiring {
		s.rouse(now)
	}
	s.mu.Unlock()
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
		now = time.Now()
		if t.since.IsZero() {
			t.since = now
		}
		h := backoff.History{N: t.tries - 1, Prev: t.wait, Elapsed: now.Sub(t.since), Verdict: backoff.Verdict{Class: backoff.ClassRetry}}
		s.mu.Unlock()

		b.decide(x, r, h)
	}
}

// decide asks for the decision and applies it. If a function of the user ends the goroutine, the
// decision is to retry after a minute.
func (b *book[K]) decide(x rejection[K], r Rejection[K], h backoff.History) {
	d, wait, least := DecisionRetry, time.Minute, time.Duration(0)
	defer func() { b.apply(x, d, wait, least) }()
	class := backoff.Classify(r.Err)
	switch o := &b.set.o; {
	case o.OnReject != nil:
		d = o.OnReject(r)
	case class.Class == backoff.ClassStop:
		d = DecisionDrop
	}
	if d == DecisionDrop {
		return
	}
	step, ok := b.set.o.Backoff.Next(h, backoff.Rand())
	if wait, least = max(step.Wait, 0), class.RetryAfter; !ok {
		d = DecisionDrop
	}
}

// apply applies a decision.
func (b *book[K]) apply(x rejection[K], d Decision, wait, least time.Duration) {
	s, e := b.set, x.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	t := e.trouble
	if t == nil || !t.judging { // another session has succeeded while OnReject ran
		return
	}
	s.change(e, func() {
		t.judging, t.err, t.session, t.wait = false, x.err, b.number, wait+least
		switch {
		case (x.op == OpSubscribe) != e.wanted(): // it does not matter any more
			e.calm()
		case d != DecisionDrop:
			// The wait begins at the decision: else a slow OnReject would leave no time in which Set.Wait sees the
			// refusal. If the key already waits longer because of another session, that wait stays.
			now := time.Now()
			s.rest.lay(e, s.rest.find(reason(x.op, e.key, x.err), now), wait, least, x.named, now)
			if d == DecisionRedial {
				b.fail(&RejectedError{Err: x.err, keys: 1, session: b.number})
			}
		case x.op == OpSubscribe:
			t.dropped = t.rejected()
			e.calm() // what becomes of its removal is another matter
		default:
			e.calm()
			if !b.ended {
				e.at[b.slot].venue = venueNo
			}
		}
	})
	s.kick()
}

// rouse lets the groups be probed that are due, by each session that lacks their keys. The caller holds mu.
func (s *Set[K]) rouse(now time.Time) {
	roused := false
	for list, size := s.rest.probe(now); len(list) > 0; list, size = s.rest.probe(now) {
		for _, e := range list {
			s.change(e, func() { e.resting, e.most = nil, int32(size) })
		}
		roused = true
	}
	if roused {
		s.kick()
	}
}
