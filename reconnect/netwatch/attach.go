package netwatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Conn is a connection that is kept open, such as a *reconnect.Conn. Its methods must return immediately, and
// be safe for concurrent use in any state of the connection.
type Conn interface {
	// Kick ends the wait before the next dial, if any.
	Kick()

	// Check makes a live connection, if any, find out soon whether it is still alive.
	Check()

	// Done returns a channel that is closed when the connection has ended for good.
	Done() <-chan struct{}
}

// Attach starts a Watcher with default options and attaches conns to it, until ctx is done. The Done channel of
// the Watcher is closed when nothing of it is left. The errors are those of [New].
func Attach(ctx context.Context, conns ...Conn) (*Watcher, error) {
	w, err := New(ctx, nil)
	if err != nil {
		return nil, err
	}
	w.Attach(ctx, conns...)
	return w, nil
}

// Attach makes the Watcher call Kick and then Check of each of conns after a change. While the machine is
// offline only Check is called. Each connection is called at a random time within [Options].Spread after the
// change. Another change does not postpone pending calls.
//
// A connection stays attached until ctx is done, its Done channel is closed, or the Watcher ends. One that is
// attached twice is called twice. The goroutine of the Watcher makes all calls, one after another.
func (w *Watcher) Attach(ctx context.Context, conns ...Conn) {
	for _, c := range conns {
		w.attached.add(&attachment{conn: c, done: c.Done(), over: ctx.Done()})
	}
}

// attachment is a connection that is attached.
type attachment struct {
	conn       Conn
	done, over <-chan struct{} // one of them is closed when it is no longer attached
	due        time.Time       // when to call it; zero: there was no change since it was called
}

// live reports whether a is still attached.
func (a *attachment) live() bool {
	select {
	case <-a.done:
		return false
	case <-a.over:
		return false
	default:
		return true
	}
}

// attachments are the connections of one Watcher, and when to call them. Only the Watcher's
// goroutine touches agenda, and the field due of an attachment.
type attachments struct {
	agenda []*attachment // those that are to be called, the earliest last

	mu      sync.Mutex // guards what follows
	all     []*attachment
	sweepAt int // the length of all at which those that are not live are removed
}

func (s *attachments) add(a *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= s.sweepAt {
		s.sweep()
	}
	s.all = append(s.all, a)
}

// sweep removes the connections that are no longer attached. The caller holds mu.
func (s *attachments) sweep() {
	s.all = slices.DeleteFunc(s.all, func(a *attachment) bool { return !a.live() })
	s.sweepAt = 2*len(s.all) + 16
}

// changed puts each connection on the agenda that is not there already.
func (s *attachments) changed(now time.Time, spread time.Duration) {
	s.mu.Lock()
	s.sweep()
	for _, a := range s.all {
		if a.due.IsZero() {
			a.due = now.Add(rand.N(max(spread, 1)))
			s.agenda = append(s.agenda, a)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(s.agenda, func(a, b *attachment) int { return b.due.Compare(a.due) })
}

// next returns when the next call is due. Ok is false if there is none.
func (s *attachments) next() (due time.Time, ok bool) {
	if len(s.agenda) == 0 {
		return time.Time{}, false
	}
	return s.agenda[len(s.agenda)-1].due, true
}

// visit calls the connections that are due.
func (s *attachments) visit(now time.Time, offline bool) {
	for due, ok := s.next(); ok && !due.After(now); due, ok = s.next() {
		last := len(s.agenda) - 1
		a := s.agenda[last]
		s.agenda[last] = nil
		s.agenda = s.agenda[:last]
		a.due = time.Time{}
		if !a.live() {
			continue
		}
		if !offline {
			a.conn.Kick()
		}
		a.conn.Check()
	}
}
