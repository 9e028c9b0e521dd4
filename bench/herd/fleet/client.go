package fleet

import (
	"cmp"
	"math"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// client is what has to be known of a connection at each step.
type client struct {
	due   int64 // when something happens next; never: nothing
	timer int64 // when its Dials are to be asked again
	since int64 // when the session began, or was lost
	dials [2]dial
	state state
	home  uint8 // the server that the session is with
	group uint8
}

// state is what a client is doing.
type state uint8

const (
	connected state = iota
	unaware         // its session is lost, and it has not noticed
	away            // dialing, or waiting
	gone            // the policy gave up
	leaving         // connected to a server that drains
	replacing       // the same, and dialing
)

const never = int64(math.MaxInt64)

// plan notes when something happens next to c.
func (r *run) plan(c *client, who int32) {
	due := c.timer
	if c.state == replacing {
		due = min(due, int64(r.Leaves[who].Close))
	}
	for i := range c.dials {
		if x := &c.dials[i]; x.state != free {
			due = min(due, x.at)
		}
	}
	if due == c.due {
		return
	}
	c.due = due
	if due != never {
		r.events.push(due, who)
	}
}

// step is what was due.
func (r *run) step(c *client, who int32, now int64) {
	switch {
	case c.state == unaware:
		r.end(c, who, time.Duration(c.dials[0].limit), now) // which it notices now
		return
	case c.state == leaving:
		r.left(c, who, now)
		return
	case c.state == connected && c.timer <= now: // Server.Ends
		r.lose(c, who, now)
		return
	case c.state == replacing && now >= int64(r.Leaves[who].Close):
		r.closed(c, who, now)
		return
	}
	news := c.timer <= now
	for i := range c.dials {
		if x := &c.dials[i]; x.state != free && x.at <= now {
			r.move(c, who, i, now)
			news = news || x.state != flying && x.state != unanswered
		}
	}
	if news {
		r.act(c, who, now)
		return
	}
	r.plan(c, who)
}

// act does what the Dials of a client say.
func (r *run) act(c *client, who int32, now int64) {
	m := &r.supervisors[who]
	for {
		switch a := m.Next(clock(now)); a.Do {
		case schedule.DoDial:
			x := &c.dials[a.Which]
			*x = dial{limit: int64(cmp.Or(a.Attempt.Connect, backoff.DefaultConnect)), number: x.number + 1}
			if r.gates != nil {
				r.arrive(c, who, a.Which, now)
				continue
			}
			r.dial(c, who, a.Which, now)
		case schedule.DoCut:
			r.cut(c, who, a.Which, now)
		case schedule.DoKeep:
			r.mark(c, who, a.Which)
			if r.gates != nil {
				r.tell(who, a.Which, now, overload)
			}
		case schedule.DoStop:
			c.state, c.timer = gone, never
			r.plan(c, who)
			return
		case schedule.DoWait:
			c.timer = never
			switch {
			case !a.At.IsZero():
				c.timer = since(a.At)
			case c.state == connected && r.Server.Ends > 0:
				c.timer = c.since + int64(r.Server.Ends)
			}
			r.plan(c, who)
			return
		}
	}
}

// move is what was due for a dial.
func (r *run) move(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	switch x.state {
	case flying:
		r.knock(c, who, i, now)
	case unanswered:
		if now >= x.limit {
			r.fail(c, who, i, now, overload)
			return
		}
		r.send(c, who, i, now)
	case refusing:
		r.fail(c, who, i, now, refused)
	case accepted:
		served := x.limit
		x.state, x.at = queued, served
		r.supervisors[who].Connected(i, clock(now))
	case queued:
		r.answer(c, who, i, now)
	case waiting: // the whole dial is given up
		r.lost(x)
		r.fail(c, who, i, now, overload)
	case denying:
		r.fail(c, who, i, now, r.slow(c, denied))
	case turningAway:
		v := overload
		v.RetryAfter, v.Caller = time.Duration(x.limit), r.Server.Status429
		r.fail(c, who, i, now, v)
	}
}

var (
	retry    = backoff.Verdict{Class: backoff.ClassRetry}
	refused  = backoff.Verdict{Class: backoff.ClassRetry, Refused: true}
	overload = backoff.Verdict{Class: backoff.ClassOverload}
	denied   = backoff.Verdict{Class: backoff.ClassSlow}
	nameless = backoff.Verdict{Class: backoff.ClassSlow, Lenient: true, Local: true}
)

// slow returns v, or the verdict that other makes have instead, which do not ask why a dial has failed.
func (r *run) slow(c *client, v backoff.Verdict) backoff.Verdict {
	if r.Groups[c.group].Client.Whole {
		return retry
	}
	return v
}

// answer is the end of a handshake, and the beginning of a session.
func (r *run) answer(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	x.state = free
	if !r.replaced(c) {
		r.ups(now, 1)
		r.awayFor[who] += now - c.since
	}
	c.state, c.home = connected, x.server
	r.backAt[who], c.since = now, now
	if r.marks != nil {
		r.marks[who] &^= 1 << x.server
	}
	r.supervisors[who].Answered(i, clock(now))
	if r.gates != nil {
		r.tell(who, i, now, backoff.Verdict{}) // a session without OnSession is ready at once
	}
}

// fail is the end of a dial that came to nothing.
func (r *run) fail(c *client, who int32, i int, now int64, v backoff.Verdict) {
	c.dials[i].state = free
	if r.gates != nil {
		r.tell(who, i, now, v)
	}
	r.supervisors[who].Failed(i, v, clock(now))
}

// cut ends a dial because its client does not want it any more.
func (r *run) cut(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	if x.state == queued || x.state == waiting || x.state == accepted {
		r.lost(x)
		r.mark(c, who, i)
	}
	if r.gates != nil {
		v := overload
		if c.state == connected {
			v = backoff.Verdict{Class: backoff.ClassStop} // the other one was answered
		}
		r.tell(who, i, now, v)
	}
	x.state = free
}
