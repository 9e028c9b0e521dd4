package netwatch

import (
	"context"
	"math/rand/v2"
	"slices"
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

// Attach starts a Watcher with default options and attaches conns to it, until ctx is done. The errors are
// those of [New].
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
		a := &attachment{conn: c, done: c.Done(), over: ctx.Done()}
		w.mu.Lock()
		if len(w.attached) >= w.sweepAt {
			w.sweep()
		}
		w.attached = append(w.attached, a)
		w.mu.Unlock()
	}
}

type attachment struct {
	conn       Conn
	done, over <-chan struct{} // no longer attached once one of them is closed
	due        time.Time       // of the pending call, or zero; owned by run
}

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

// sweep removes the connections that are no longer attached. The caller must hold mu.
func (w *Watcher) sweep() {
	w.attached = slices.DeleteFunc(w.attached, func(a *attachment) bool { return !a.live() })
	w.sweepAt = 2*len(w.attached) + 16
}

// plan adds each attached connection to the agenda, unless its call is pending. The caller must hold mu.
func (w *Watcher) plan(now time.Time) {
	w.sweep()
	for _, a := range w.attached {
		if a.due.IsZero() {
			a.due = now.Add(rand.N(max(w.o.Spread, 1)))
			w.agenda = append(w.agenda, a)
		}
	}
	slices.SortFunc(w.agenda, func(a, b *attachment) int { return b.due.Compare(a.due) })
}

// visit calls the connections that are due, and returns the time of the next call, or zero.
func (w *Watcher) visit(now time.Time, offline bool) (next time.Time) {
	for last := len(w.agenda) - 1; last >= 0; last-- {
		a := w.agenda[last]
		if a.due.After(now) {
			return a.due
		}
		w.agenda[last] = nil
		w.agenda = w.agenda[:last]
		a.due = time.Time{}
		if !a.live() {
			continue
		}
		if !offline {
			a.conn.Kick()
		}
		a.conn.Check()
	}
	return time.Time{}
}
