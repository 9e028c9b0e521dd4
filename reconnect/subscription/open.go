package subscription

import (
	"context"
	"errors"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// open is Layer.Open. It asks for the essential keys, or for all if the session replaces
// another, and reads the answers.
func (s *Set[K]) open(ctx context.Context, o *reconnect.Opening) error {
	b, err := s.begin(o)
	if err != nil {
		return err
	}
	limit := time.Time{}
	if end, ok := ctx.Deadline(); ok && o.Planned {
		spare := time.Until(end) / 3
		if s.o.Timeout > 0 {
			spare = min(spare, s.o.Timeout)
		}
		limit = end.Add(-spare)
	}
	write := func(_ context.Context, m conn.Message) error {
		began := time.Now()
		err := o.Write(m)
		b.blocked(time.Since(began))
		return err
	}
	for {
		if err := b.judge(); err != nil {
			return err
		}
		switch r, next := b.openStep(time.Now(), o.Planned, limit); next {
		case openJudge:
		case openSend:
			err = b.send(r, write)
		case openRead:
			err = s.read(o)
		case openDone:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// read reads one message, and passes the message on if it is no answer.
func (s *Set[K]) read(o *reconnect.Opening) error {
	m, err := o.Read()
	if err != nil {
		return err
	}
	if s.receive(reconnect.Message{Message: m, Session: o.Session}) {
		return nil
	}
	return o.Deliver(m)
}

// blocked notes how long a write has waited. In that time no answer was read, so it does not count
// for the answers. After a long wait the answers are read before the next write, which may wait again.
func (b *book[K]) blocked(d time.Duration) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	b.drain = d >= time.Millisecond
	for _, r := range b.inflight {
		if !r.deadline.IsZero() {
			r.deadline = r.deadline.Add(d)
		}
	}
}

// errCrowd cannot happen with a Conn: it has two sessions at most.
var errCrowd = errors.New("subscription: a third session")

// begin opens the book of a new session.
func (s *Set[K]) begin(o *reconnect.Opening) (*book[K], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := 0
	switch len(s.books) {
	case 0:
	case 1:
		slot = 1 - s.books[0].slot
	default:
		return nil, errCrowd
	}
	b := newBook(s, o.Session, slot)
	b.mark = o.HoldRefetch()
	s.books = append(s.books, b)
	var held []*entry[K]
	for _, k := range s.dialedWith(o.Conn()) {
		e := s.entry(k)
		b.settle(e, func(p *place[K]) { p.venue = venueYes })
		held = append(held, e)
	}
	s.note(Event[K]{Kind: EventHeld, Session: b.number}, held)
	return b, nil
}

// opening is the next step in a session that is being opened.
type opening uint8

const (
	openJudge opening = iota // decide about rejections
	openSend                 // send the request
	openRead                 // read a message, which may be an answer
	openDone                 // nothing: the session is ready
)

// openStep returns the next step. A session that replaces another asks for all keys until the limit.
func (b *book[K]) openStep(now time.Time, planned bool, limit time.Time) (*request[K], opening) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	b.expire(now)
	b.set.rouse(now)
	late := !limit.IsZero() && !now.Before(limit)
	all := planned && !late
	if len(b.rejections) > 0 || b.failure != nil {
		return nil, openJudge
	}
	if b.drain = b.drain && len(b.inflight) > 0; !b.drain {
		if r := b.next(all); r != nil {
			return r, openSend
		}
	}
	for _, r := range b.inflight {
		if all || r.Op == OpSubscribe && r.entries[0].essential {
			return nil, openRead
		}
	}
	if late && b.open > 0 {
		b.set.note(Event[K]{Kind: EventBehind, Session: b.number, Missing: b.open}, nil)
	}
	return nil, openDone
}
