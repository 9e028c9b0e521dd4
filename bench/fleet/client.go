package fleet

import (
	"cmp"
	"math"
	"math/bits"
	"time"

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

// state is what a client is doing.
type state uint8

const (
	connected state = iota
	unaware         // its session is lost, and it has not noticed
	away            // dialling, or waiting
	gone            // the policy gave up
)

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
)

const never = int64(math.MaxInt64)

// at notes when something happens next to c.
func (r *run) plan(c *client, who int32) {
	due := c.timer
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
		r.agenda.push(due, who)
	}
}

// step is what was due.
func (r *run) step(c *client, who int32, now int64) {
	if c.state == unaware {
		r.notice(c, who, now)
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
	m := &r.minds[who]
	for {
		switch a := m.Next(clock(now)); a.Do {
		case backoff.Dial:
			x := &c.dials[a.Which]
			*x = dial{limit: int64(cmp.Or(a.Try.Connect, backoff.DefaultConnect)), number: x.number + 1}
			if r.gates != nil {
				r.arrive(c, who, a.Which, now)
				continue
			}
			r.dial(c, who, a.Which, now)
		case backoff.Cut:
			r.cut(c, who, a.Which, now)
		case backoff.Keep:
			r.mark(c, who, a.Which)
			if r.gates != nil {
				r.tell(who, a.Which, now, backoff.Verdict{Class: backoff.ClassStop})
			}
		case backoff.Stop:
			c.state, c.timer = gone, never
			r.plan(c, who)
			return
		case backoff.Wait:
			c.timer = never
			if !a.At.IsZero() {
				c.timer = since(a.At)
			}
			r.plan(c, who)
			return
		}
	}
}

// move is what was due for a dial.
func (r *run) move(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	whole := r.Groups[c.group].Client.Whole
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
		r.minds[who].Connected(i, clock(now))
	case queued:
		if whole && now > x.limit {
			panic("late")
		}
		r.answer(c, who, i, now)
	case waiting: // the whole dial is given up
		r.lost(x)
		r.fail(c, who, i, now, overload)
	case turningAway:
		v := overload
		v.RetryAfter = time.Duration(x.limit)
		r.fail(c, who, i, now, v)
	}
}

var (
	retry    = backoff.Verdict{Class: backoff.ClassRetry}
	refused  = backoff.Verdict{Class: backoff.ClassRetry, Refused: true}
	overload = backoff.Verdict{Class: backoff.ClassOverload}
)

// answer is the end of a handshake, and the beginning of a session.
func (r *run) answer(c *client, who int32, i int, now int64) {
	x := &c.dials[i]
	x.state = free
	c.state, c.home = connected, x.server
	r.back(who, c, now)
	if r.marks != nil {
		r.marks[who] &^= 1 << x.server
	}
	r.minds[who].Answered(i, clock(now))
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
	r.minds[who].Failed(i, v, clock(now))
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
			v = backoff.Verdict{} // the other one was answered
		}
		r.tell(who, i, now, v)
	}
	x.state = free
}

// lost counts a handshake that the server completes for nobody.
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
	r.dialled(now)
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
	r.minds[who].Connected(i, clock(now))
}

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
		r.agenda.push(s.when(s.done(max(now, s.back))+s.work), theQueue(x.server))
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
		r.agenda.push(s.when(s.done(now)+s.work), theQueue(k))
	}
	c := &r.clients[t.who]
	if x := &c.dials[t.which]; x.state == waiting && x.number == t.begun && x.server == k {
		r.answer(c, t.who, int(t.which), now)
		r.act(c, t.who, now)
	}
}

func (r *run) refuse(c *client, who int32, i int, now int64) {
	r.refused++
	if rtt := r.Groups[c.group].RTT; rtt > 0 {
		c.dials[i].state, c.dials[i].at = refusing, now+int64(rtt)/2
		return
	}
	r.fail(c, who, i, now, refused)
}

func (r *run) turnAway(c *client, who int32, i int, now int64) {
	r.refused++
	x := &c.dials[i]
	r.minds[who].Connected(i, clock(now))
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

// ignore drops a SYN: the kernel sends the next one 1, 3, 7, 15 s after the first
// (RFC 6298 5.5 with an initial timeout of 1 s, as Linux does it).
func (r *run) ignore(c *client, i int, now int64) {
	x := &c.dials[i]
	x.state = unanswered
	next := x.began + (int64(1)<<min(x.syns, 30)-1)*int64(time.Second)
	x.at = max(min(next, x.limit), now)
}
