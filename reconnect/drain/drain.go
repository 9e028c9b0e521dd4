package drain

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Drain closes all connections of the Group, as described in the package documentation, and returns when all
// are closed. If ctx has a deadline, the lead takes at most half of the time until the deadline, and the window
// nine tenths of the rest.
//
// When ctx is done, the closers of the remaining connections are called as soon as [Options].Closers allows,
// and Drain returns within [Options].CloseTimeout. A closer that has not been called by then is never called:
// see [Error].Left. Drain also waits until the handlers behind Handler have returned, for at most CloseTimeout.
//
// The error is nil if each connection was closed in time or had gone before, and otherwise an [*Error]. A Group
// drains once: a further call waits for the same drain, hurries it when its own ctx is done, and returns the
// same error.
func (g *Group) Drain(ctx context.Context) error {
	g.beginDrain(ctx)
	select {
	case <-g.done:
	case <-ctx.Done():
		g.hurry(context.Cause(ctx))
		<-g.done // closed at g.limit at the latest
	}
	return g.result
}

// Error reports a drain that was not complete in time.
type Error struct {
	Err      error // cause of the context of Drain if it hurried the drain, or nil
	Hurried  int   // connections closed early, because of Err
	Hung     int   // closers and notices that have not returned
	Left     int   // connections whose closer was never called, because too many others were slow or hung
	Handlers int   // handlers behind Group.Handler that have not returned
}

func (e *Error) Error() string {
	var parts []string
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	for _, p := range []struct {
		n    int
		text string
	}{
		{e.Hurried, "closed early: %d"}, {e.Hung, "hung: %d"},
		{e.Left, "not closed: %d"}, {e.Handlers, "handlers still running: %d"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.n))
		}
	}
	return "drain: " + strings.Join(parts, ", ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// beginDrain begins the lead, unless another call has begun it.
func (g *Group) beginDrain(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase != serving {
		return
	}
	now := g.now()
	if d, ok := ctx.Deadline(); ok {
		g.deadline = now + time.Until(d)
	}
	g.phase, g.until = lead, now+max(min(g.o.Lead, (g.deadline-now)/2), 0)
	for _, m := range g.due {
		if g.unnoticed(m) {
			m.at = never
		}
	}
	g.due.sort()
	g.advance()
}

// unnoticed reports whether no time of its close was promised to m.
func (g *Group) unnoticed(m *Member) bool { return m.notice == nil || !m.warned }

// spread begins the window. The window is cut into as many slots as there are members; in a random
// order, each member gets a random moment of one slot. g.mu is held.
func (g *Group) spread(now time.Duration) {
	length := max(min(g.o.Window, (g.deadline-now)/10*9), 0)
	g.phase, g.until, g.warn = window, now+length, min(g.o.Warn, length)
	g.rand.Shuffle(len(g.due), g.due.Swap)
	n := 0
	for _, m := range g.due {
		if g.unnoticed(m) {
			n++
		}
	}
	i := 0
	for _, m := range g.due {
		if !g.unnoticed(m) {
			continue
		}
		span := length
		if !m.warned {
			span -= g.warn
		}
		m.at = now + time.Duration((float64(i)+g.rand.Float64())/float64(n)*float64(span))
		i++
	}
	g.due.sort()
}

// hurry closes all connections that are left, because of cause.
func (g *Group) hurry(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == over || g.hurried != nil {
		return
	}
	now := g.now()
	g.hurried = cause
	g.phase, g.until, g.limit = window, now, after(now, g.o.CloseTimeout)
	for _, m := range g.due { // which keeps their order
		m.at, m.warned = min(m.at, now), true
	}
	g.advance()
}

// finish ends the drain if nothing is left that can be waited for. g.mu is held.
func (g *Group) finish(now time.Duration) {
	if g.phase != window {
		return
	}
	idle := g.calls == g.stats.Hung // nothing runs that may still return in time
	switch {
	case g.limit <= now:
	case idle && len(g.due) > 0 && !g.room(): // too many hang
	case !idle || len(g.due) > 0:
		if g.hurried == nil {
			g.limit = never // a handler has added a member
		}
		return
	case g.handlers > 0:
		g.limit = min(g.limit, after(now, g.o.CloseTimeout))
		return
	}
	for _, m := range g.due {
		m.at = never
	}
	g.phase, g.limit, g.until = over, never, now // Drain does not wait for a member that is added now
	if g.hurried != nil || g.calls+len(g.due)+g.handlers > 0 {
		g.result = &Error{g.hurried, g.early, g.calls, len(g.due), g.handlers}
	}
	close(g.done)
}
