package drain

import (
	"errors"
	"time"
)

// call is one call of a closer or a notice, in a goroutine.
type call struct {
	slot   // when it is slow, and then when it is hung; guarded by mu of the Group, as slow and hung are
	member *Member
	by     time.Time // for a notice; zero: it is a closer
	cause  Cause
	began  time.Duration
	slow   bool // it holds no place any more
	hung   bool // Drain does not wait for it any more
}

// errNotReturned is the error of a closer that has ended its goroutine.
var errNotReturned = errors.New("the closer ended its goroutine (runtime.Goexit) and did not return")

// run calls the function. Drain waits for its end, unless it hangs: see Group.finish.
func (c *call) run() {
	m, err := c.member, errNotReturned
	defer func() { m.group.ended(c, err) }()
	if c.by.IsZero() {
		err = m.close(m.group.o.Code, m.group.reason)
	} else {
		m.notice(c.by)
		err = nil
	}
}

// begin begins the notice of m if it has one to be called, and else its closer. g.mu is held.
func (g *Group) begin(m *Member, now time.Duration) {
	c := &call{slot: slot{at: now + min(placeTime, g.o.CloseTimeout)}, member: m, began: now, cause: g.cause()}
	if m.warned {
		g.due.remove(m)
		m.state = closing
	} else {
		m.warned = true
		if m.at += g.warn; g.phase == window && m.at > g.until { // it was added late
			m.at = now + g.share(g.until-now)
		}
		c.by = time.Now().Add(m.at - now) // by the clock of now, which clients may compare with theirs
		g.due.moved(m)
		g.stats.Noticed++
	}
	g.running.add(c)
	g.places++
	g.calls++
	go c.run()
}

// ended notes that c has returned err.
func (g *Group) ended(c *call, err error) {
	defer g.settle(c, err) // even if the hook ends the goroutine
	if hook := g.o.Trace.CloseDone; hook != nil && c.by.IsZero() {
		hook(CloseDone{Cause: c.cause, Took: g.now() - c.began, Err: err})
	}
}

// settle counts c, which has returned err.
func (g *Group) settle(c *call, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	switch {
	case c.hung:
		g.stats.Hung--
	default:
		g.running.remove(c)
		if !c.slow {
			g.places--
		}
	}
	if c.by.IsZero() {
		g.stats.count(c.cause, err)
		if c.member.state != gone {
			c.member.state = gone
			g.stats.Members--
		}
	}
	g.advance()
}

// overdue looks for calls that have run for too long. g.mu is held.
func (g *Group) overdue(now time.Duration) {
	for g.running.next() <= now {
		c := g.running[0]
		if !c.slow {
			c.slow = true
			g.places--
		}
		if limit := after(c.began, g.o.CloseTimeout); now < limit {
			c.at = limit
			g.running.moved(c)
			continue
		}
		c.hung = true
		g.stats.Hung++
		g.running.remove(c)
	}
}
