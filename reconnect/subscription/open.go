package subscription

import (
	"context"
	"slices"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// open is Layer.Open. It asks for the essential keys, or for all if the session replaces
// another, and reads the answers.
func (s *Set[K]) open(ctx context.Context, o *reconnect.Opening) error {
	b := s.begin(o)
	limit := time.Time{}
	if end, ok := ctx.Deadline(); ok && o.Planned {
		spare := time.Until(end) / 3
		if s.o.Timeout > 0 {
			spare = min(spare, s.o.Timeout)
		}
		limit = end.Add(-spare)
	}
	slow := false // the last write has waited, so the answers are read before the next one
	write := func(_ context.Context, m conn.Message) error {
		began := time.Now()
		err := o.Write(m)
		waited := time.Since(began)
		b.postpone(waited)
		slow = waited >= time.Millisecond
		return err
	}
	for {
		if err := b.judge(); err != nil {
			return err
		}
		all := o.Planned && (limit.IsZero() || time.Now().Before(limit))
		switch r, read := b.openStep(all, slow); {
		case r != nil:
			if err := b.send(r, write); err != nil {
				return err
			}
		case read:
			if err := s.read(o); err != nil {
				return err
			}
			if b.progressed() {
				o.Progress()
			}
		default:
			return nil
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

// progressed reports whether the venue has agreed to a key since the last call.
func (b *book[K]) progressed() (moved bool) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	moved, b.moved = b.moved, false
	return moved
}

// postpone gives the answers more time, because none was read while a write has waited.
func (b *book[K]) postpone(d time.Duration) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	b.flow.delay(d)
}

// begin opens the book of a new session. A Conn has two sessions at most.
func (s *Set[K]) begin(o *reconnect.Opening) *book[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := 0
	if len(s.books) > 0 {
		slot = 1 - s.books[0].slot
	}
	b := newBook(s, o.Session, slot)
	b.mark = o.HoldRefetch()
	s.books = append(s.books, b)
	for _, k := range s.dialedWith(o.Conn()) {
		b.settle(s.entry(k), func(p *place[K]) { p.venue = venueYes })
	}
	return b
}

// openStep returns the next request of a session that is being opened, or else whether to read an
// answer first. Only essential keys count unless all is set. If it is slow, no request is made before
// the answers have come.
func (b *book[K]) openStep(all, slow bool) (r *request[K], read bool) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	if !slow || len(b.flow.list) == 0 {
		if r := b.next(all); r != nil {
			return r, false
		}
	}
	return nil, slices.ContainsFunc(b.flow.list, func(r *request[K]) bool {
		return all || r.Op == OpSubscribe && r.entries[0].essential
	})
}
