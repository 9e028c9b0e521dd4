package ledger

import (
	"context"
	"net"
)

// wait is what the goroutines in [Ledger.Wait] for one message share.
type wait struct {
	waiters int // guarded by the Ledger's mutex
	done    chan struct{}
	settled Settled // without its data; valid when done is closed
}

// remembered is how many outcomes that were not OutcomeAcknowledged are kept for Wait, unless
// Options.Messages is more.
const remembered = 1024

// Wait waits for the outcome of a message, and returns nil for OutcomeAcknowledged, and otherwise an
// [*OutcomeError]. If ctx is done first, Wait returns the cause of ctx, and the message is still sent.
//
// The Ledger remembers the last 1024 outcomes other than OutcomeAcknowledged, or Options.Messages of them if
// that is more. Wait returns [ErrUnknown] for:
//
//   - a message before one whose outcome is forgotten
//   - a message that was settled in an earlier run of the program
//   - an ID that no message has
//
// In a callback of the Conn, Wait, WaitAll and AddWait return [ErrInCallback].
func (l *Ledger) Wait(ctx context.Context, id uint64) error {
	if l.inCallback(ctx) {
		return ErrInCallback
	}
	l.mu.Lock()
	if l.queue.byID(id) == nil {
		defer l.mu.Unlock()
		return l.past(id)
	}
	w := l.waits[id]
	if w == nil {
		w = &wait{done: make(chan struct{})}
		if l.waits == nil {
			l.waits = make(map[uint64]*wait)
		}
		l.waits[id] = w
	}
	w.waiters++
	l.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.waiters--; w.waiters == 0 && l.waits[id] == w {
			delete(l.waits, id)
		}
		return context.Cause(ctx)
	}
	if w.settled.Outcome == OutcomeAcknowledged {
		return nil
	}
	return &OutcomeError{w.settled}
}

// inCallback reports whether ctx is that of a callback of the Conn, which must not wait for an
// acknowledgement.
func (l *Ledger) inCallback(ctx context.Context) bool {
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	return c != nil && c.InCallback(ctx)
}

// past returns what became of a message that is not in the queue.
func (l *Ledger) past(id uint64) error {
	if id == 0 || id > l.state.LastID {
		return ErrUnknown
	}
	for i := range l.bad {
		if l.bad[i].ID == id {
			return &OutcomeError{l.bad[i]}
		}
	}
	if id <= l.unknownTo {
		return ErrUnknown
	}
	return nil
}

// remember keeps an outcome for Wait.
func (l *Ledger) remember(e Settled) {
	e.Data = nil
	if len(l.bad) < max(remembered, l.o.Messages) {
		l.bad = append(l.bad, e)
		return
	}
	l.unknownTo = max(l.unknownTo, l.bad[l.oldestBad].ID)
	l.bad[l.oldestBad] = e
	l.oldestBad = (l.oldestBad + 1) % len(l.bad)
}

// WaitAll waits until every message has its outcome. Call it before [reconnect.Conn.Shutdown], which does not
// wait for the Ledger. Acknowledgements must be read meanwhile: a reader that calls AckedTo must keep reading
// until Shutdown has ended the stream. WaitAll returns the cause of ctx if ctx is done first, and
// [net.ErrClosed] if the Conn is done and messages were left. In a callback of the Conn it returns
// [ErrInCallback].
func (l *Ledger) WaitAll(ctx context.Context) error {
	if l.inCallback(ctx) {
		return ErrInCallback
	}
	for {
		l.mu.Lock()
		done, left, empty := l.queue.live == 0 && l.adding == 0, l.stats.Outcomes[OutcomeLeft] > 0, l.empty.Wait()
		l.mu.Unlock()
		switch {
		case done && left:
			return net.ErrClosed
		case done:
			return nil
		}
		select {
		case <-empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Unacked returns the unacknowledged messages, in order.
func (l *Ledger) Unacked() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Entry, 0, l.queue.live)
	for e := range l.queue.all {
		list = append(list, e.entry())
	}
	return list
}

// LastID returns the ID of the newest message, including those of earlier runs if there is a Store, or 0. A
// program that adds the items of a numbered source continues after LastID.
func (l *Ledger) LastID() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.LastID
}

// Stats are counts since [New]. The sum of Added and Loaded is the sum of Unacked and all Outcomes.
type Stats struct {
	Added  uint64 // messages that Add accepted
	Loaded uint64 // messages found in the Store, including damaged ones
	Resets uint64 // how often the peer had forgotten us

	Outcomes [OutcomeLeft + 1]uint64 // messages by outcome

	Unacked int // messages unacknowledged now
}

// Stats returns the counts.
func (l *Ledger) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Unacked = l.queue.live
	return s
}
