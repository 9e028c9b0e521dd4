package lead

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Turn is the turn to read one link. The methods of the reader are for one goroutine at a time. A nil Turn is
// always the supervisor's.
type Turn struct {
	link  *link.Link
	conn  conn.Follower
	offer func() // lets the reader try again
	keeps bool   // the reader may read a burst

	// of the link. The low bits: a State; then expired; the high bits: how often the reader has left
	state *atomic.Uint32
	back  chan struct{} // holds one signal: the supervisor has the turn
	timer xsync.Timer   // calls expire
	armed atomic.Bool   // the timer is set
	left  uint32        // how often the reader had left at the last call of expire

	// Owned by the reader.
	waits   int             // how many calls of Read had to wait; in a row, unless keeps is set
	waiting bool            // the present call of Read is counted in waits
	last    <-chan struct{} // Done of the context of the last Read
	done    <-chan struct{} // Done of the context at whose end the reader is woken; nil: none
	stop    func() bool     // ends the wait for done; nil if done is nil
}

const (
	stateMask = link.LeadMask
	expired   = stateMask + 1 // the supervisor has the turn again because no Read came, and the reader has not seen that
	leftOnce  = 2 * expired
)

// Lease is the period of the timer that ends a free turn. If no Read comes, the supervisor has the turn after two Leases
// at most.
const Lease = 10 * time.Millisecond

// A reader that has had to wait enough times gets the turn. Without keeps these waits must be in a row. (In a burst it
// need not wait.) If the reader was away for so long that the supervisor got the turn back, it must wait more often:
// then waits begins at slow.
const (
	enough = 4
	slow   = -60
)

// fast is how many messages of a burst the reader must read in a Lease to keep the turn.
const fast = 1000

// New returns the turn to read l, or nil if the connection cannot be read in turns. New does not call offer; Lend
// does. With keeps a fast reader keeps the turn in a burst. Keeps is for an inbox that blocks when it is full: such an
// inbox loses nothing that the reader would read.
func New(l *link.Link, offer func(), keeps bool) *Turn {
	c, ok := l.Conn.(conn.Follower)
	if !ok {
		return nil
	}
	return &Turn{link: l, conn: c, offer: offer, keeps: keeps, state: &l.Lead, back: make(chan struct{}, 1)}
}

// Session returns the number of the link's session.
func (t *Turn) Session() uint64 { return t.link.Session }

// State returns the present state.
func (t *Turn) State() State { return State(t.state.Load() & stateMask) }

// change changes the state by an event, and does the Act of the event. It returns the new state.
func (t *Turn) change(event func(State) (State, Act)) State {
	for {
		was := t.state.Load()
		s, act := event(State(was & stateMask))
		next := was&^stateMask | uint32(s)
		if s == Free && was&stateMask == uint32(Reader) {
			next += leftOnce
		}
		if !t.state.CompareAndSwap(was, next) {
			continue
		}
		switch act {
		case Wake:
			t.conn.Wake()
		case Offer:
			t.offer()
		case Back:
			t.signal()
		}
		return s
	}
}

// Take takes the turn for the reader, and reports whether the reader has it. If not, the reader waits at the inbox, and
// calls Take again when the turn is offered. The reader takes a turn that is free however few its waits are, because
// nobody reads while the turn is free.
func (t *Turn) Take() bool {
	if t == nil {
		return false
	}
	if !t.waiting {
		t.waiting = true
		if t.waits++; t.state.Load()&expired != 0 {
			t.state.And(^uint32(expired))
			t.waits = slow
		}
	}
	return (t.waits >= enough || t.State() == Free) && t.change(State.Take) == Reader
}

// Got notes that a Read has got a message from the inbox.
func (t *Turn) Got() {
	if t == nil {
		return
	}
	if !t.waiting && !t.keeps {
		t.waits = 0
	}
	t.waiting = false
}

// Read waits for the next message, and returns it, appended to buf[:0]. ok is false if the supervisor must read on, if
// ctx has ended, or if Tell has said that there is something in the inbox. The caller is the reader, and has the turn.
func (t *Turn) Read(ctx context.Context, buf []byte) (m conn.Message, ok bool) {
	returns := false
	defer func() {
		if !returns { // ctx, or the net.Conn, has ended this goroutine or panics
			t.Leave(true)
		}
	}()
	done := ctx.Done()
	again := done == t.last
	t.last = done
	t.watch(ctx, done)
	more := false
	if ctx.Err() == nil {
		m, more, ok = t.conn.ReadWhole(buf)
	}
	if !again {
		t.unwatch()
	}
	if ok {
		t.waiting = false
		t.link.Heard()
	}
	hand := !ok || more && !t.keeps
	if hand {
		t.waits = 0
	}
	t.link.Lag(more)
	returns = true
	t.Leave(hand)
	return m, ok
}

// watch lets the end of ctx wake the reader. For a program that calls Read again and again with one context, watch does
// so twice, and no more.
func (t *Turn) watch(ctx context.Context, done <-chan struct{}) {
	if done == t.done {
		return
	}
	t.unwatch()
	if t.done = done; done != nil {
		t.stop = context.AfterFunc(ctx, t.conn.Wake)
	}
}

func (t *Turn) unwatch() {
	if t.stop != nil {
		t.stop()
	}
	t.done, t.stop = nil, nil
}

// Leave gives the turn up. With hand the supervisor has it at once.
func (t *Turn) Leave(hand bool) {
	if t.change(func(s State) (State, Act) { return s.Leave(hand) }) == Free {
		t.arm()
	}
}

// Tell ends the wait of the reader, because there is something for it in the inbox. Any goroutine may call it.
func (t *Turn) Tell() {
	if t != nil && t.State() == Reader {
		t.conn.Wake()
	}
}

// Asked reports whether the reader wants the turn, and Lend may be called.
func (t *Turn) Asked() bool { return t != nil && t.State() == Asked && t.conn.Woken() }

// Lend lets the reader read, which has asked for that. It returns when the reader gives the turn back or the link ends.
// Only the supervisor calls Lend: between two messages, when all that it has read is in the inbox.
func (t *Turn) Lend() {
	t.change(State.Lend)
	t.arm()
	for done := t.link.Done(); t.State() > Asked; { // Asked: the turn came back, and the reader wants it again
		select {
		case <-t.back:
		case <-done:
			done = nil
			t.change(State.Recall)
		}
	}
	t.link.Lag(false) // what has come is for the inbox
}

// End ends the turn, and stops its timer. Only the supervisor calls End, while it has the turn.
func (t *Turn) End() {
	if t != nil {
		t.timer.Stop()
		t.timer.Wait()
		t.unwatch()
	}
}

// arm sets the timer, unless it is set.
func (t *Turn) arm() {
	if !t.armed.Load() && !t.armed.Swap(true) {
		t.timer.Set(Lease, t.expire)
	}
}

// expire is the timer's callback. It gives the turn to the supervisor if the turn was free for a whole Lease, or if
// more messages come than the reader takes. While the turn is not free, the timer is not set again.
func (t *Turn) expire() {
	was := t.state.Load()
	left := was &^ (leftOnce - 1)
	reads := (left - t.left) / leftOnce
	unused := reads == 0 || reads < fast && t.link.Lags()
	t.left = left
	if next, act := State(was & stateMask).Expire(); unused && act == Back && t.state.CompareAndSwap(was, was&^stateMask|expired|uint32(next)) {
		t.signal()
	}
	t.armed.Store(false)
	if t.State() == Free {
		t.arm()
	}
}

// signal tells the supervisor that it has the turn.
func (t *Turn) signal() {
	select {
	case t.back <- struct{}{}:
	default: // the last signal is still there
	}
}
