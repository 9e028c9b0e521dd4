package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// Answer is the venue's answer to a request, as parsed by Options.Answer.
//
// An answer counts only for the session that received it. It belongs to the request with the same ID; without
// ID, to the requests for Keys (and Op, if set); without both, to the only request in flight, if
// Options.InFlight is 1. Limits:
//
//   - By Keys alone, a late answer looks like the answer to the next request of the same kind for the same
//     key.
//   - Without ID and Keys, the answer after a missing one ends the session, because it may belong to either
//     request.
//   - An answer with an unknown ID is passed to the other layers and to the reader.
type Answer[K comparable] struct {
	ID string // Request.ID, or "" if the venue does not repeat it
	Op Op     // Request.Op, used if there is no ID; 0 if unknown

	// Keys are the keys of the answer, each equal to a key of the request even if the venue spells it
	// differently. Default: all unanswered keys of the request.
	Keys []K

	// Err says why the venue has refused; nil means that it has agreed. If Err says how long to wait (see
	// [backoff.RetryAfter]), a ready session requests nothing before that. Return [ErrAlready] where it
	// applies, because a request whose answer was lost is sent twice.
	Err error

	// Refused are the keys refused with Err; the venue has agreed to the other Keys. Default: all, if Err is
	// set.
	Refused []K

	// Tag is the venue's name for the subscription to one key. Request.Tags has it when the key is removed, and
	// [Set.ByTag] finds the key. A tag is valid only in its session.
	Tag string

	// Ended says that the venue has ended the subscriptions to Keys, which must be set, without a request,
	// because of Err (default: [ErrEnded]). Each key is then treated as refused.
	Ended bool

	// Completed says that the venue has ended the subscriptions to Keys, which must be set, because their
	// streams are complete (as in graphql-ws). Each key is removed as by [Set.Replace], however often it was
	// added, without a request or a rejection.
	Completed bool

	// Deliver also passes the message to the reader of the Conn.
	Deliver bool
}

// ErrAlready is for Answer.Err, possibly wrapped, if the venue refuses to subscribe to a subscribed key, or to
// unsubscribe from one that is not subscribed. For one key it counts as agreement. A batch refused with
// ErrAlready is divided like any other.
var ErrAlready = errors.New("already in the requested state")

// ErrEnded is the error of a [Rejection] if the venue has ended a subscription and Answer.Err is nil.
var ErrEnded = errors.New("the venue has ended the subscription")

// ErrNoAnswer is the error of a [Rejection] after two missing answers, the first of them after 3 × Timeout.
var ErrNoAnswer = errors.New("no answer")

var (
	errNameless = fmt.Errorf("%w: answers without ID and Keys need Options.InFlight: 1", ErrNoAnswer)
	errUnclear  = errors.New("subscription: an answer without ID and Keys may belong to a request that was given up: a new session tells them apart")
)

// receive is Layer.Receive. It runs in the goroutine that reads or opens the session.
func (s *Set[K]) receive(m reconnect.Message) (taken bool) {
	if s.o.Answer == nil {
		return false
	}
	a, ok := s.o.Answer(m)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer(m.Session, &a) && !a.Deliver
}

// answer works off an answer, and reports whether a belongs to this Set. The caller holds mu.
func (s *Set[K]) answer(session uint64, a *Answer[K]) (ours bool) {
	b := s.book(session)
	switch {
	case b != nil && b.match(a):
		return true
	case b != nil && b.tooLate(a), a.ID == "", s.gave(a.ID):
		s.stats.Strays++
		return true
	}
	return false // it may be for another layer
}

// match works off an answer that belongs to something in b, and reports whether it does.
func (b *book[K]) match(a *Answer[K]) (hit bool) {
	defer b.kick()
	if a.Completed {
		b.complete(a.Keys)
		return true
	}
	if a.Ended {
		b.end(a)
		return true
	}
	if a.ID == "" && len(a.Keys) == 0 && !b.oneByOne() {
		return false
	}
	for _, r := range slices.Clone(b.flow.list) {
		if r.state != phaseMade && a.names(r) && b.answered(r, a) {
			hit = true
		}
	}
	return hit
}

// oneByOne reports whether an answer with neither ID nor keys must belong to the one request that
// waits.
func (b *book[K]) oneByOne() bool {
	switch {
	case b.set.o.InFlight > 1:
		b.nameless = true
		return false
	case len(b.flow.late) > 0:
		b.fail(errUnclear)
		return false
	}
	return true
}

// names reports whether a can be the answer to r: by a.ID if that is set, else by a.Op.
func (a *Answer[K]) names(r *request[K]) bool {
	if a.ID != "" {
		return a.ID == r.ID
	}
	return a.Op == 0 || a.Op == r.Op
}

// agrees reports whether the venue has agreed to k.
func (a *Answer[K]) agrees(k K) bool {
	if a.Err != nil && (len(a.Refused) == 0 || slices.Contains(a.Refused, k)) {
		return false
	}
	return len(a.Keys) == 0 || slices.Contains(a.Keys, k)
}

// answered works off an answer to r, and reports whether r waited for it.
func (b *book[K]) answered(r *request[K], a *Answer[K]) bool {
	left := b.unanswered(r)
	about := left
	if len(a.Keys) > 0 {
		about = b.among(r, a.Keys)
	}
	if r.superseded { // an answer to an earlier request has settled some of its keys
		for _, k := range r.Keys {
			if e := b.set.entries[k]; a.agrees(k) && (e == nil || e.at[b.slot].request != r) {
				b.doubt(b.set.entry(k), r.Op)
			}
		}
	}
	if len(about) > 0 || a.ID != "" {
		b.flow.answered(r, len(about) == len(left), time.Now())
	}
	switch {
	case len(left) == 0 && a.ID != "":
		b.flow.forget(r)
		return true
	case len(about) == 0:
		return false
	case a.Err == nil:
		b.accept(r.Op, about, a.Tag)
	case len(a.Refused) > 0:
		b.refuse(r.Op, b.among(r, a.Refused), a.Err, len(r.Keys) > 1)
		b.accept(r.Op, slices.DeleteFunc(about, func(e *entry[K]) bool { return e.at[b.slot].request != r }), a.Tag)
	case len(about) == len(left) && len(about) < len(r.Keys) && len(a.Keys) != 1:
		b.divide(about, a.Err) // the error may be about a key that another answer has settled
	case len(about) == len(left):
		b.refuseAll(r.Op, about, a.Err)
	default:
		b.refuse(r.Op, about, a.Err, true)
	}
	if len(about) == len(left) {
		b.flow.forget(r)
	}
	return true
}

// among returns the entries of the keys for which r waits, each once: an answer may name a key twice.
func (b *book[K]) among(r *request[K], keys []K) (found []*entry[K]) {
	seen := make(map[K]bool, len(keys))
	for _, k := range keys {
		if e := b.set.entries[k]; e != nil && e.at[b.slot].request == r && !seen[k] {
			seen[k] = true
			found = append(found, e)
		}
	}
	return found
}

// accept notes that the venue has agreed to a request for these keys.
func (b *book[K]) accept(op Op, list []*entry[K], tag string) {
	for _, e := range list {
		b.settle(e, func(p *place[K]) {
			e.most = 0
			b.set.rest.agreed(e, time.Now())
			e.calm()
			switch {
			case p.doubt:
				p.doubt, p.venue = false, venueMaybe
			case op == OpSubscribe:
				p.venue, e.trouble, b.moved = venueYes, nil, true
			default:
				p.venue = venueNo
			}
		})
		if op == OpUnsubscribe || len(list) > 1 {
			tag = ""
		}
		b.tag(e, tag)
	}
	b.set.kick() // the other session, which may be waiting to retry a rejected removal
}

// end notes that the venue has ended subscriptions by itself.
func (b *book[K]) end(a *Answer[K]) {
	err := cmp.Or(a.Err, ErrEnded)
	b.flow.supersede(OpUnsubscribe, a.Keys)
	for _, k := range a.Keys {
		e := b.set.entries[k]
		switch {
		case e == nil:
		case e.at[b.slot].request != nil: // whose answer may have been given before
			b.doubt(e, OpUnsubscribe)
		case e.at[b.slot].venue != venueNo:
			b.set.stats.Refusals++
			b.tag(e, "")
			b.settle(e, func(p *place[K]) {
				p.venue = venueNo
				b.reject(e, OpSubscribe, err, false)
			})
		}
	}
}

// complete notes that the streams of these keys have come to their end, so that they are not wanted any
// more.
func (b *book[K]) complete(keys []K) {
	b.flow.supersede(OpUnsubscribe, keys)
	for _, k := range keys {
		e := b.set.entries[k]
		if e == nil {
			continue
		}
		if e.at[b.slot].request != nil { // whose answer may have been given before
			b.doubt(e, OpUnsubscribe)
		} else {
			b.tag(e, "")
			b.settle(e, func(p *place[K]) { p.venue = venueNo })
		}
		if b.set.entries[k] == e && e.refs > 0 {
			b.set.refer(e, 0)
		}
	}
	b.set.kick()
}

// tooLate handles an answer to a request that was given up, and reports whether there was one. The answer
// confirms the request, unless the opposite was requested since: a venue that processes requests concurrently, as
// Action Cable does, may have done the old request after the newer one, so the key is uncertain.
func (b *book[K]) tooLate(a *Answer[K]) (known bool) {
	for _, r := range b.flow.late {
		if !a.names(r) || a.ID == "" && len(a.Keys) == 0 {
			continue
		}
		known = true
		named := r.Keys
		if len(a.Keys) > 0 {
			named = slices.DeleteFunc(slices.Clone(r.Keys), func(k K) bool { return !slices.Contains(a.Keys, k) })
		}
		if len(named) > 0 {
			b.flow.answered(r, len(named) == len(r.Keys), time.Now())
		}
		tag := a.Tag
		if len(named) > 1 {
			tag = ""
		}
		for _, k := range named {
			if !a.agrees(k) {
				continue
			}
			e := b.set.entry(k) // it may have been forgotten, and made again
			if r.superseded {
				b.doubt(e, r.Op)
			} else {
				b.accept(r.Op, []*entry[K]{e}, tag)
			}
		}
	}
	b.kick()
	return known
}

// doubt notes that the venue has done an old request for e. If that contradicts the state of e, or a
// request on its way, which may have been done before, e is asked for, or removed, again.
func (b *book[K]) doubt(e *entry[K], op Op) {
	b.set.change(e, func() {
		p := &e.at[b.slot]
		if p.request != nil && p.request.Op != op {
			p.doubt = true
		}
		if op == OpSubscribe && p.venue == venueNo || op == OpUnsubscribe && p.venue == venueYes {
			p.venue = venueMaybe // also if there is a request: it may be refused
		}
	})
}
