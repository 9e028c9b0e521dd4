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
	ID string // Request.ID; "": the venue does not repeat the id
	Op Op     // Request.Op, if there is no ID; 0: the venue does not say

	// Keys are the keys of the answer, for a venue that answers key by key, or names the keys. They
	// must equal keys of the request: convert a key that the venue writes in another way. Default:
	// all keys of the request that are not answered yet.
	Keys []K

	// Err says that the venue has refused, and why. If the venue refuses several keys at once,
	// they are asked for in two halves, because the error may be about one of them. A request can
	// arrive twice, because an answer was lost, so return [ErrAlready] for "already subscribed" and
	// "not subscribed". Default: the venue has agreed.
	Err error

	// Refused are the refused ones of Keys. The venue has agreed to the others. Default: all of
	// Keys, if there is an Err.
	Refused []K

	// Tag is the name that the venue has given to the subscription, as Ethereum nodes do. The
	// answer must be about one key. The request to unsubscribe has the tag in Request.Tags, and
	// [Set.ByTag] finds the key. A tag is valid in its session only. Default: none.
	Tag string

	// Ended says that the venue has ended the subscriptions to Keys without a request, because of
	// Err (default: [ErrEnded]). Keys must be set. Each of the keys is then treated as refused, so
	// by default it is asked for again after a wait.
	Ended bool

	// Deliver says that the message has data as well, and goes on to the reader of the Conn, too.
	Deliver bool
}

// ErrAlready is an error for Answer.Err, to be returned or wrapped, if the venue refuses to subscribe
// to a subscribed key, or to unsubscribe from one that is not subscribed. For one key ErrAlready
// counts as an agreement. A batch that was refused with ErrAlready is divided like any other.
var ErrAlready = errors.New("already in the requested state")

// ErrEnded is the error of a [Rejection] if the venue has ended a subscription without a request, and
// the answer does not say why.
var ErrEnded = errors.New("the venue has ended the subscription")

// ErrNoAnswer is the error of a [Rejection] if the venue has not answered twice.
var ErrNoAnswer = errors.New("no answer")

var (
	errNameless = fmt.Errorf("%w: answers without ID and Keys need Options.InFlight: 1", ErrNoAnswer)
	errUnclear  = errors.New("subscription: an answer without ID and Keys may belong to a request that was given up")
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

// names reports whether a can be the answer to a request: by a.ID if that is set, else by a.Op.
func (a *Answer[K]) names(id string, op Op) bool {
	if a.ID != "" {
		return a.ID == id
	}
	return a.Op == 0 || a.Op == op
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

// among returns the entries of list that have one of the keys.
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

// accept notes that the venue has agreed to a request for these keys.
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

// refuseAll notes that the venue has refused a whole request. Several keys are asked for in two
// halves.
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
