package subscription

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redial-go/redial/reconnect"
)

// Answer is the answer of the venue to a request, as Options.Answer has read it from a message.
//
// An answer counts for the session that has brought it. It belongs to the request with the same ID;
// without ID, to the requests for Keys (and Op, if set); without both, to the only request on its
// way, if Options.InFlight is 1. An answer that belongs to no request on its way confirms nothing:
// [Stats].Strays counts it. The rule has these limits:
//
//   - By Keys alone, a late answer cannot be told from the answer to the next request of the same
//     kind for the same key.
//   - Without ID and Keys, the answer after one that did not come in time ends the session, because
//     nothing shows which of the two it is.
//   - An answer with an ID that the Set has not given and that no request has goes on to the other
//     layers and to the reader.
type Answer[K comparable] struct {
	ID string // of the request, as in Request.ID; "": the venue does not repeat it
	Op Op     // what was asked for, if there is no ID; 0: the venue does not say

	// Keys are the keys that it is about, for a venue that answers key by key, or names
	// them. They must equal those of the request, so convert what the venue writes in another
	// way. Default: all keys of the request that are not answered yet.
	Keys []K

	// Err says that the venue has refused, and why. A refusal of all keys of a request, of
	// which there are several, says nothing about a single one: they are asked for in two
	// halves. A request can arrive twice, because an answer was lost, so return [ErrAlready] for
	// "already subscribed" and "not subscribed". Default: the venue has agreed.
	Err error

	// Refused are those of Keys to which Err belongs. The venue has agreed to the others.
	// Default: all of Keys.
	Refused []K

	// Tag is the name that the venue has given to the subscription, if it gives names. It is
	// for an answer about one key. It comes back in Request.Tags, and [Set.ByTag] finds
	// the key by it. It holds for its session only. Default: none.
	Tag string

	// Ended says that this is no answer: the venue has ended the subscriptions to Keys by itself,
	// because of Err. Without Err the error is ErrEnded. Keys are needed. Each of them is then
	// treated as refused, so that by default it is asked for again after a wait.
	Ended bool

	// Deliver says that the message goes on to the reader of the Conn, too, because it has
	// data as well.
	Deliver bool
}

// ErrAlready is the error that Options.Answer returns, or wraps, if the venue has refused because
// it is already as was asked for: the key is subscribed, or is not. For one key this counts as an
// agreement. A batch that was refused for it is divided like any other.
var ErrAlready = errors.New("already so")

// ErrEnded is the error of a [Rejection] if the venue has ended a subscription by itself, and
// the answer does not say why.
var ErrEnded = errors.New("the venue has ended the subscription")

// ErrNoAnswer is the error of a [Rejection] if the venue has not answered twice.
var ErrNoAnswer = errors.New("no answer")

var (
	errNameless = fmt.Errorf("%w: answers without ID and Keys need Options.InFlight: 1", ErrNoAnswer)
	errUnclear  = errors.New("subscription: an answer without ID and Keys may belong to a request that was given up")
)

// receive is Layer.Receive. It runs in the goroutine that reads the session, or in the one that
// opens it.
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

// answer works off an answer, and reports whether it can be one to us. The caller holds mu.
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
	if a.Ended {
		b.end(a)
		return true
	}
	if a.ID == "" && len(a.Keys) == 0 && !b.oneByOne() {
		return false
	}
	for _, r := range slices.Clone(b.inflight) {
		if r.state != phaseMade && a.names(r.ID, r.Op) && b.answered(r, a) {
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
	case len(b.late) > 0:
		b.fail(errUnclear)
		return false
	}
	return true
}

// names reports whether a can be the answer to a request: by the id if it has one, else by Op.
func (a *Answer[K]) names(id string, op Op) bool {
	if a.ID != "" {
		return a.ID == id
	}
	return a.Op == 0 || a.Op == op
}

// agrees reports whether the venue has done what was asked for with k.
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
		about = b.set.among(left, a.Keys)
	}
	if len(about) == 0 {
		return false
	}
	switch {
	case a.Err == nil:
		b.accept(r.Op, about, a.Tag)
	case len(a.Refused) > 0:
		bad := b.set.among(about, a.Refused)
		good := slices.DeleteFunc(slices.Clone(about), func(e *entry[K]) bool { return slices.Contains(bad, e) })
		b.accept(r.Op, good, a.Tag)
		b.refuse(r.Op, bad, a.Err)
	case len(about) == len(left):
		b.refuseAll(r.Op, about, a.Err)
	default:
		b.refuse(r.Op, about, a.Err)
	}
	if len(about) == len(left) {
		b.forget(r)
	}
	b.kick()
	return true
}

// among returns those of list that have one of the keys.
func (s *Set[K]) among(list []*entry[K], keys []K) (found []*entry[K]) {
	if len(keys) == 1 { // an answer for each key would otherwise cost a set each
		for _, e := range list {
			if e.key == keys[0] {
				return []*entry[K]{e}
			}
		}
		return nil
	}
	set := make(map[K]struct{}, len(keys))
	for _, k := range keys {
		set[k] = struct{}{}
	}
	for _, e := range list {
		if _, ok := set[e.key]; ok {
			found = append(found, e)
		}
	}
	return found
}

// accept notes that the venue has done what was asked for.
func (b *book[K]) accept(op Op, list []*entry[K], tag string) {
	kind := EventHeld
	if op == OpUnsubscribe {
		kind = EventReleased
	}
	certain := list[:0:0]
	for _, e := range list {
		b.settle(e, func(p *place[K]) {
			e.calm()
			switch {
			case p.in&inDoubt != 0:
				p.in, p.venue = p.in&^inDoubt, venueMaybe
				return
			case op == OpSubscribe:
				p.venue, e.trouble = venueYes, nil
			default:
				p.venue = venueNo
			}
			certain = append(certain, e)
		})
		b.tag(e, "")
		if op == OpSubscribe && tag != "" && len(list) == 1 {
			b.tag(e, tag)
		}
	}
	b.set.note(Event[K]{Kind: kind, Session: b.number}, certain)
}

// refuseAll notes that the venue has refused a whole request. If it has several keys they are
// asked for in two halves.
func (b *book[K]) refuseAll(op Op, list []*entry[K], err error) {
	if len(list) == 1 {
		b.refuse(op, list, err)
		return
	}
	half := (len(list) + 1) / 2
	for _, part := range [][]*entry[K]{list[:half], list[half:]} {
		b.addJob(op, part) // first, so that settle does not queue them for another batch
		for _, e := range part {
			b.settle(e)
		}
	}
}

// refuse notes that the venue has refused each of these keys by itself.
func (b *book[K]) refuse(op Op, list []*entry[K], err error) {
	if errors.Is(err, ErrAlready) {
		b.accept(op, list, "")
		return
	}
	for _, e := range list {
		b.set.stats.Refusals++
		e.at[b.slot].in &^= inDoubt
		switch {
		case b.needless(op, e):
			b.settle(e)
		default:
			b.settle(e, func(*place[K]) { e.mind().single, e.mind().judging = true, true })
			b.rejections = append(b.rejections, rejection[K]{e, op, err})
		}
	}
}

// end notes that the venue has ended subscriptions by itself.
func (b *book[K]) end(a *Answer[K]) {
	err := a.Err
	if err == nil {
		err = ErrEnded
	}
	for _, k := range a.Keys {
		e := b.set.entries[k]
		if e == nil || e.at[b.slot].venue == venueNo && e.at[b.slot].request == nil {
			continue
		}
		if e.at[b.slot].request != nil { // whose answer may have been given before
			b.doubt(e, OpUnsubscribe)
			continue
		}
		b.set.stats.Refusals++
		judge := e.wanted() && !b.retiring && !e.mind().judging
		b.settle(e, func(p *place[K]) {
			p.venue = venueNo
			e.mind().judging = judge || e.mind().judging
		})
		if b.tag(e, ""); judge {
			b.rejections = append(b.rejections, rejection[K]{e, OpSubscribe, err})
		}
	}
	b.kick()
}
