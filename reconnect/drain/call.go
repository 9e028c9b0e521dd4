package drain

import "time"

// call is one call of a closer or a notice, in a goroutine.
type call struct {
	slot   // when it is slow, and then when it is hung; guarded by mu of the Group, as slow and hung are
	member *Member
	by     time.Time // for a notice; zero: it is a closer
	began  time.Duration

	renewal, hurried bool // why it is a closer
	slow             bool // it holds no place any more
	hung             bool // Drain does not wait for it any more
}

// run calls the function. Drain waits for its end, unless it hangs: see Group.finish.
func (c *call) run() {
	m, failed := c.member, true // failed stays true if the function ends the goroutine
	defer func() { m.group.ended(c, failed) }()
	if c.by.IsZero() {
		failed = m.close(closeCode, m.group.reason) != nil
	} else {
		m.notice(c.by)
	}
}

// begin begins the notice of m if it has one to be called, and else its closer. g.mu is held.
func (g *Group) begin(m *Member, now time.Duration) {
	c := &call{
		slot: slot{at: now + min(placeTime, g.o.CloseTimeout)}, member: m, began: now, renewal: g.phase < window, hurried: g.hurried != nil,
	}
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
	}
	g.running.add(c)
	g.places++
	g.calls++
	go c.run()
}

// ended counts c, which has ended.
func (g *Group) ended(c *call, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if c.hung {
		g.stats.Hung--
	} else {
		g.running.remove(c)
		if !c.slow {
			g.places--
		}
	}
	if c.by.IsZero() {
		if failed {
			g.stats.Failed++
		} else {
			g.stats.Closed++
		}
		if c.hurried {
			g.early++
		} else if c.renewal {
			g.stats.Renewed++
		}
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
