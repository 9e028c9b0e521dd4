package fleet

import (
	"math/bits"
	"time"
)

// dial is one of the two that a client may have under way.
type dial struct {
	at     int64 // when something happens next; never: nothing
	began  int64
	limit  int64 // when connecting is given up, or a whole dial; behind that, when the answer is there
	state  dialState
	syns   uint8 // sent so far
	server uint8
	number uint8 // of the dial
}

// dialState is what is due next.
type dialState uint8

const (
	free        dialState = iota
	inLine                // nothing, until the gate opens
	flying                // a SYN arrives
	unanswered            // the next SYN, or the end of patience with connecting
	refusing              // a refusal arrives
	accepted              // the answer to a SYN arrives; limit is when the server has served it
	queued                // the answer arrives
	waiting               // nothing: served at random, or not at all
	turningAway           // a 503 arrives
	denying               // a 401 arrives
)

// lost counts a handshake that the server completes in vain.
func (r *run) lost(x *dial) {
	if x.syns > 0 && x.limit != never { // not swallowed
		r.wasted++
	}
}

// mark remembers that a handshake with a server hung.
func (r *run) mark(c *client, who int32, i int) {
	if r.marks != nil && r.Groups[c.group].Client.Addresses {
		r.marks[who] |= 1 << c.dials[i].server
	}
}

// dial begins a dial, whose limits count from now on.
func (r *run) dial(c *client, who int32, i int, now int64) {
	r.dialed(now)
	x := &c.dials[i]
	x.began, x.limit, x.syns = now, now+x.limit, 0
	x.server = r.choose(who)
	r.send(c, who, i, now)
}

// choose is the server that a dial meets.
func (r *run) choose(who int32) uint8 {
	n := len(r.servers)
	if n == 1 {
		return 0
	}
	if r.marks == nil {
		return uint8(r.rand.IntN(n))
	}
	all := uint64(1)<<n - 1
	good := all &^ r.marks[who]
	if good == 0 {
		good, r.marks[who] = all, 0
	}
	if r.Server.First {
		return uint8(bits.TrailingZeros64(good))
	}
	for k := r.rand.IntN(bits.OnesCount64(good)); k > 0; k-- {
		good &= good - 1
	}
	return uint8(bits.TrailingZeros64(good))
}

// send sends a SYN.
func (r *run) send(c *client, who int32, i int, now int64) {
	r.syns++
	x := &c.dials[i]
	x.syns++
	if rtt := r.Groups[c.group].RTT; rtt > 0 {
		x.state, x.at = flying, now+int64(rtt)/2
		return
	}
	r.knock(c, who, i, now)
}

// knock is a SYN that arrives.
func (r *run) knock(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	s := &r.servers[x.server]
	if int(x.server) < r.Server.Hung {
		r.swallow(c, who, i, now)
		return
	}
	full, down := s.full(now), s.down
	if now >= s.back {
		down = Up
	}
	switch down {
	case Up:
		switch {
		case !full:
			r.join(c, who, i, now)
		case s.queue == Reject:
			r.refuse(c, who, i, now)
		case s.queue == Busy:
			r.turnAway(c, who, i, now)
		default:
			r.ignore(c, i, now)
		}
	case Refused:
		r.refuse(c, who, i, now)
	case Unavailable:
		r.turnAway(c, who, i, now)
	case Denied:
		r.deny(c, who, i, now)
	case Nameless:
		r.refused++
		r.fail(c, who, i, now, r.slow(c, nameless))
	case Swallowed:
		r.swallow(c, who, i, now)
	case Stopped:
		if full {
			r.ignore(c, i, now)
			return
		}
		r.join(c, who, i, now)
	default:
		r.ignore(c, i, now)
	}
}

// accept is the end of connecting for one whose answer is sent at a time.
func (r *run) accept(c *client, who int32, i int, now, served int64) {
	x := &c.dials[i]
	g := &r.Groups[c.group]
	if g.RTT > 0 {
		rtt := int64(g.RTT)
		x.state, x.at = accepted, now+rtt/2
		x.limit = never
		if served != never {
			x.limit = max(served, now+rtt) + rtt/2
		}
		return
	}
	limit := x.limit
	x.state, x.at, x.limit = queued, served, served
	if served == never {
		x.state = waiting
	}
	if g.Client.Whole && served > limit {
		x.state, x.at = waiting, limit
	}
	r.supervisors[who].Connected(i, clock(now))
}

// swallow accepts the connection of a client, whose handshake is then never answered.
func (r *run) swallow(c *client, who int32, i int, now int64) { r.accept(c, who, i, now, never) }

// join waits in the queue.
func (r *run) join(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	s := &r.servers[x.server]
	if s.queue != Random {
		r.accept(c, who, i, now, s.join(now))
		return
	}
	r.accept(c, who, i, now, never)
	x.limit = 0 // not swallowed
	s.waiting = append(s.waiting, ticket{who, uint8(i), x.number})
	if !s.serving {
		s.serving = true
		r.events.push(s.when(s.done(max(now, s.back))+s.work), theQueue(x.server))
	}
}

// serve is the end of a handshake of a server that serves at random.
func (r *run) serve(k uint8, now int64) {
	s := &r.servers[k]
	if !s.serving || len(s.waiting) == 0 {
		return
	}
	t := s.pick(r.rand)
	if s.serving = len(s.waiting) > 0; s.serving {
		r.events.push(s.when(s.done(now)+s.work), theQueue(k))
	}
	c := &r.clients[t.who]
	if x := &c.dials[t.which]; x.state == waiting && x.number == t.begun && x.server == k {
		r.answer(c, t.who, int(t.which), now)
		r.act(c, t.who, now)
	}
}

// refuse refuses a connection, or resets it.
func (r *run) refuse(c *client, who int32, i int, now int64) {
	r.refused++
	if rtt := r.Groups[c.group].RTT; rtt > 0 {
		c.dials[i].state, c.dials[i].at = refusing, now+int64(rtt)/2
		return
	}
	r.fail(c, who, i, now, refused)
}

// turnAway answers 503.
func (r *run) turnAway(c *client, who int32, i int, now int64) {
	r.refused++
	x := &c.dials[i]
	r.supervisors[who].Connected(i, clock(now))
	answered, told := r.servers[x.server].turnAway(now)
	if rtt := int64(r.Groups[c.group].RTT); rtt > 0 {
		answered = max(answered, now+rtt) + rtt/2
	}
	if r.Groups[c.group].Client.Whole && answered > x.limit {
		x.state, x.at, x.limit = waiting, x.limit, never
		return
	}
	x.state, x.at, x.limit = turningAway, answered, int64(told)
}

// deny answers 401.
func (r *run) deny(c *client, who int32, i int, now int64) {
	r.refused++
	r.supervisors[who].Connected(i, clock(now))
	c.dials[i].state, c.dials[i].at = denying, now+int64(r.Groups[c.group].RTT)*3/2
}

// ignore drops a SYN: the kernel sends the next one 1, 3, 7, 15 s after the first
// (RFC 6298 5.5 with an initial timeout of 1 s, as Linux does it).
func (r *run) ignore(c *client, i int, now int64) {
	x := &c.dials[i]
	x.state = unanswered
	next := x.began + (int64(1)<<min(x.syns, 30)-1)*int64(time.Second)
	x.at = max(min(next, x.limit), now)
}
