package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/internal/schedule"
)

// Leave is how one connection leaves a server that drains. Times are from the beginning of the drain.
type Leave struct {
	// Close is when the server closes the connection.
	Close time.Duration

	// Told is how long the server asks the client to wait, with the close; 0: it asks nothing.
	Told time.Duration

	// Dial is when the client begins to replace the connection, as reconnect.Conn.Rotate does; 0: not
	// before the close. A dial that is under way at the close becomes the redial.
	Dial time.Duration
}

// validate returns what is wrong with the Leaves of h.
func (h *Herd) validateLeaves() error {
	switch {
	case h.Leaves == nil:
		return nil
	case len(h.Leaves) != h.N:
		return fmt.Errorf("fleet: %d ways to leave are not one for each of %d connections", len(h.Leaves), h.N)
	case h.Fresh, h.Outage.Spells != nil, h.Outage.Length != 0, h.Outage.Again != 0, h.Server.Rolling != 0, h.Processes != 0:
		return errors.New("fleet: connections that leave have no outage, no gate, and are not fresh")
	}
	for _, l := range h.Leaves {
		if !within(maxWatch, l.Close, l.Told) || l.Dial < 0 {
			return errors.New("fleet: the time at which a connection leaves is out of range")
		}
	}
	return nil
}

// leave begins the drain.
func (r *run) leave() {
	r.leaving = r.N
	for i := range r.clients {
		c := &r.clients[i]
		c.state, c.timer = leaving, int64(r.Leaves[i].Close)
		if at := int64(r.Leaves[i].Dial); at > 0 {
			c.timer = min(c.timer, at)
		}
		r.plan(c, int32(i))
	}
}

// left is what was due for a connection that has not left yet: its replacement, or its close.
func (r *run) left(c *client, who int32, now int64) {
	l := &r.Leaves[who]
	if now < int64(l.Close) {
		o := *r.Groups[c.group].Client.options()
		o.OneConnection, o.StartSpread = true, 0
		r.supervisors[who] = schedule.NewDials(&o, r.rand)
		r.supervisors[who].Start(clock(now))
		c.state, c.timer = replacing, never
		r.act(c, who, now)
		return
	}
	r.leaving--
	r.lose(c, who, now)
}

// closed is the close of a connection whose replacement is not there yet. A dial that is under
// way becomes the redial. A wait ends, and that of a loss begins.
func (r *run) closed(c *client, who int32, now int64) {
	r.leaving--
	if c.dials[0].state == free && c.dials[1].state == free {
		r.supervisors[who] = schedule.NewDials(r.Groups[c.group].Client.options(), r.rand)
		r.lose(c, who, now)
		return
	}
	r.ups(now, -1)
	c.state, c.since = away, now
	r.plan(c, who)
}

// replaced reports whether a session that has begun takes the place of one that goes on, and
// was not lost.
func (r *run) replaced(c *client) bool {
	if c.state != replacing {
		return false
	}
	r.leaving--
	return true
}
