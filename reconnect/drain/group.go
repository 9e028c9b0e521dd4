package drain

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Group holds the accepted connections of a server. Make a Group with [New]. It is safe for concurrent use.
// Without members it has no goroutine or timer.
type Group struct {
	o      Options
	reason string
	start  time.Time     // what the times of members and calls count from
	done   chan struct{} // closed when the drain is over

	mu       sync.Mutex // guards what follows; not held while a function of the user's runs
	rand     *rand.Rand
	due      schedule[*Member] // the members whose notice or close is to come
	running  schedule[*call]   // the calls that are not hung
	places   int               // how many of these are not slow
	calls    int               // calls that have not returned, with those that are hung
	handlers int               // requests in Handler
	warn     time.Duration     // how long before its close a member is noticed
	phase    phase
	until    time.Duration // the end of the lead, or of the window
	deadline time.Duration // of the drain; never: none
	limit    time.Duration // when the drain is over, whatever is left; never: not known, or past
	hurried  error         // why the drain hurries; nil: it does not
	early    int           // closes because the drain hurries, for [Error].Hurried
	result   error         // what Drain returns when done is closed
	timer    *time.Timer   // calls tick; nil: not needed yet
	alarm    time.Duration // when it does; never: it does not
	stats    Stats
}

// phase is where a Group is in its life.
type phase uint8

const (
	serving phase = iota
	lead          // Drain was called; members stay
	window        // members close
	over          // Drain waits for no member any more
)

// New returns a Group. The error names the wrong option.
func New(o *Options) (*Group, error) {
	g := &Group{
		o:     o.withDefaults(),
		start: time.Now(),
		done:  make(chan struct{}),
		limit: never, deadline: never, alarm: never,
	}
	if err := g.o.validate(); err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	g.reason = g.o.Advice.String()
	g.rand, g.warn = rand.New(g.o.Rand), g.o.Warn
	return g, nil
}

// Add adds a connection to the Group. Remove the returned member when the connection has ended. The Group calls
// close at most once, in a new goroutine; close closes the connection with this code and reason, as far as the
// protocol has them, and must be safe to call while the connection is in use. Add panics if close is nil.
//
// A connection may be added during a drain. During the lead nothing changes; during the window it is closed at
// a random moment in the rest of the window; after the window, or when the context of Drain is done, it is
// closed immediately.
//
// The window ends early if no connection is left and no handler runs behind [Group.Handler]. Put the handler
// that adds a connection behind Handler, so that Drain waits, for at most [Options].CloseTimeout, for a
// connection that is not added yet.
func (g *Group) Add(close func(code int, reason string) error) *Member {
	return g.AddNotice(close, nil)
}

// AddNotice is like Add for a protocol that can warn a client: notice sends a message that the connection will
// be closed at the time by. The Group calls notice at most once, [Options].Warn before that time, in a new
// goroutine. A connection that is still there at that time is closed, even if notice has not returned.
//
// A connection that is added during the window, with less than Warn left of it, is warned immediately, and by
// is drawn from the rest of the window. After the window (see Add), or when the context of Drain is done, the
// connection is closed immediately, without notice.
//
// Ask the client to leave some time before by, such as after four fifths of the remaining time.
func (g *Group) AddNotice(close func(code int, reason string) error, notice func(by time.Time)) *Member {
	if close == nil {
		panic("drain: Add: the function that closes the connection is nil")
	}
	m := &Member{group: g, close: close, notice: notice, warned: notice == nil}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.at = g.draw(m, g.now())
	g.due.add(m)
	g.stats.Added++
	g.stats.Members++
	g.advance()
	return m
}

// Stats returns the numbers of the Group.
func (g *Group) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

// Stats are counts of a Group: Members and Hung as they are now, the others since the beginning.
type Stats struct {
	Members int // connections, including those that are being closed
	Hung    int // closers and notices still running after CloseTimeout

	Added   int // connections that were added
	Left    int // connections removed before the Group closed them
	Closed  int // closers that returned nil
	Failed  int // closers that returned an error, most often because the connection had just ended
	Renewed int // closes, of Closed and Failed, because of MaxAge
}

// draw returns when the notice or the close of a member is due that is added now. g.mu is
// held.
func (g *Group) draw(m *Member, now time.Duration) time.Duration {
	ahead := time.Duration(0) // how long before the close
	if !m.warned {
		ahead = g.warn
	}
	switch {
	case g.phase == lead, g.phase == serving && g.o.MaxAge == 0:
		return never
	case g.phase == serving:
		least := g.o.MaxAge - g.o.MaxAge/10 - ahead
		return after(now, after(least, time.Duration(float64(g.o.MaxAge/5)*g.rand.Float64())))
	}
	m.warned = m.warned || g.until <= now // the client has no time to leave
	return now + g.share(g.until-ahead-now)
}

// share draws a part of the rest of the window. g.mu is held.
func (g *Group) share(left time.Duration) time.Duration {
	return time.Duration(float64(max(left, 0)) * g.rand.Float64())
}

// now returns the time since the Group was made.
func (g *Group) now() time.Duration { return time.Since(g.start) }

// tick is the timer's callback.
func (g *Group) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alarm = never
	g.advance()
}

// advance does all that is due, and sets the timer for what comes next. It is called after
// every change. g.mu is held.
func (g *Group) advance() {
	now := g.now()
	if g.phase == lead && g.until <= now {
		g.spread(now)
	}
	g.overdue(now)
	for now < g.limit && g.room() && g.due.next() <= now {
		g.begin(g.due[0], now)
	}
	g.finish(now)
	g.wake(now)
}

// room reports whether another call may begin. g.mu is held.
func (g *Group) room() bool { return g.places < g.o.Closers && g.calls/16 < g.o.Closers }

// wake sets the timer. g.mu is held.
func (g *Group) wake(now time.Duration) {
	next := g.running.next()
	if g.room() {
		next = min(next, g.due.next())
	}
	switch g.phase {
	case lead:
		next = min(next, g.until)
	case window:
		next = min(next, g.limit)
	}
	switch {
	case next == g.alarm:
		return
	case g.alarm != never && !g.timer.Stop():
		return // tick is about to run, and calls this again
	}
	if g.alarm = next; next == never {
		return
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(next-now, g.tick)
	} else {
		g.timer.Reset(next - now)
	}
}
