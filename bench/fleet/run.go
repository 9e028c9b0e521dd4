package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Run lets the herd come back, in virtual time. It ends early when all are up and
// nothing more is to happen. The only error, but for a bad Herd, is the end of
// ctx.
func Run(ctx context.Context, h Herd) (*Result, error) {
	h, err := h.withDefaults()
	if err != nil {
		return nil, err
	}
	r := newRun(h)
	r.die(0)
	if h.Outage.Again > 0 {
		r.deaths = 1
		r.agenda.push(int64(h.Outage.Length+h.Outage.Again), theServer)
	}
	for n := 0; r.up < h.N || r.deaths > 0; n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		at, who, ok := r.agenda.pop()
		if !ok {
			break
		}
		if who < 0 {
			r.other(at, who)
		} else if c := &r.clients[who]; c.due == at {
			r.step(c, who, at)
		}
	}
	return r.result(), nil
}

// other is what was due for none of the clients.
func (r *run) other(at int64, who int32) {
	if who == theServer {
		r.deaths--
		r.die(at)
		return
	}
	if door, ok := r.gates.rung(who, at); ok {
		r.gates.doors[door].rings = -1
		r.open(door, at)
	}
}

const theServer = -1 // who dies a second time; below it are the processes

// run is the state of one Run.
type run struct {
	Herd
	rand    *rand.Rand
	agenda  *agenda
	server  server
	clients []client
	keepers []keeper // of the clients
	gates   *gates   // nil: there are none
	up      int
	deaths  int // still to come
	fetched int // nothing: it keeps the compiler from leaving out what still reads
	tally
}

// client is what has to be known of a connection at each step, in 32 bytes. Most of
// what happens to a client in a large herd is one more SYN without an answer, and
// that needs no more.
type client struct {
	due   int64 // when something happens next; -1: nothing
	began int64 // when the try began; or since when the session is up
	limit int64 // when the present part of the try is given up; while waiting, how long the first part may take
	state state
	syns  uint8 // sent in this try
}

// keeper is what has to be known of a connection when a try or a session ends.
type keeper struct {
	outage backoff.Outage
	wait   time.Duration // the last one drawn
	grace  time.Duration // the limit on the next handshake
}

// state is what is due next.
type state uint8

const (
	waiting     state = iota // the next dial
	unanswered               // the next SYN, or the end of patience with connecting
	queued                   // the end of the handshake
	doomed                   // the end of patience with the handshake: the server will be too late
	turningAway              // a 503
	connected                // nothing, unless the server dies
	inLine                   // nothing, until the gate opens
	gone                     // nothing: the policy gave up
)

func newRun(h Herd) *run {
	r := &run{
		Herd:    h,
		rand:    rand.New(rand.NewPCG(h.Seed, 0x726564_69616c)),
		server:  newServer(h.Server),
		clients: make([]client, h.N),
		keepers: make([]keeper, h.N),
		tally:   newTally(h.N, h.Watch),
	}
	inHugePages(r.clients) // a fifth less time for a million
	inHugePages(r.keepers)
	for i := range r.clients {
		c := &r.clients[i]
		c.state, c.began, c.due = connected, -longAgo, -1
	}
	r.gates = newGates(r)
	r.agenda = newAgenda(int64(h.Watch), r.still)
	r.up = h.N
	return r
}

// still reports whether at is when something happens next to who.
func (r *run) still(who int32, at int64) bool {
	if who < 0 {
		if who == theServer {
			return true
		}
		_, ok := r.gates.rung(who, at)
		return ok
	}
	c := &r.clients[who]
	if c.due != at || c.state >= connected {
		return false
	}
	if c.state != queued && (c.state != unanswered || at >= c.limit) { // it may well fail
		k := &r.keepers[who]
		r.fetched += k.outage.Attempt().N + int(k.grace)
	}
	return true
}

// longAgo is since when the connections have been up that are lost at 0.
const longAgo = int64(24 * time.Hour)

// die is the death of the server: sessions are lost, those in its queue are
// reset, and dials meet what Down says from now on. Whoever sends SYNs to nobody
// goes on.
func (r *run) die(now int64) {
	r.server.die(now, now+int64(r.Outage.Length))
	r.died(now, now+int64(r.Outage.Length))
	loss := backoff.Verdict{Class: backoff.ClassRetry}
	if r.Outage.Loss == CloseLater {
		loss.Class = backoff.ClassOverload
	}
	for i := range r.clients {
		switch c := &r.clients[i]; c.state {
		case connected:
			r.lose(c, int32(i), now)
			r.fail(c, int32(i), now, loss)
		case queued, doomed, turningAway:
			r.fail(c, int32(i), now, backoff.Verdict{Class: backoff.ClassRetry})
		}
	}
}

// lose is the end of a session: after one that was stable the waits start again
// from the first (reconnect.Run's rule).
func (r *run) lose(c *client, who int32, now int64) {
	r.up--
	r.ups(now, -1)
	k := &r.keepers[who]
	if ready := time.Duration(now - c.began); ready >= max(r.Client.StableAfter, k.wait) {
		*k = keeper{}
		k.outage.Begin(clock(now))
	}
}

// fail asks the policy what to do after a try or a session that ended in v.
func (r *run) fail(c *client, who int32, now int64, v backoff.Verdict) {
	if r.gates != nil {
		r.tell(who, now, v)
	}
	k := &r.keepers[who]
	s, ok := k.outage.Next(r.Client.Policy, v, clock(now), r.rand)
	if !ok {
		c.state, c.due = gone, -1
		return
	}
	t := k.outage.Try(s)
	k.wait, c.state = s.Wait, waiting
	c.limit = int64(orDefault(t.Connect, backoff.DefaultConnect))
	k.grace = orDefault(t.Handshake, backoff.DefaultHandshake)
	r.at(c, who, now+int64(k.outage.Attempt().Verdict.RetryAfter+s.Wait))
}

// at notes when something happens next to c.
func (r *run) at(c *client, who int32, due int64) {
	c.due = due
	r.agenda.push(due, who)
}

// step is what was due.
func (r *run) step(c *client, who int32, now int64) {
	switch c.state {
	case waiting:
		if r.gates != nil {
			r.arrive(c, who, now)
			return
		}
		r.dial(c, who, now)
	case unanswered:
		if now >= c.limit {
			r.fail(c, who, now, backoff.Verdict{Class: backoff.ClassOverload})
			return
		}
		r.knock(c, who, now)
	case queued:
		c.state, c.began, c.due = connected, now, -1
		r.up++
		r.ups(now, 1)
		if r.gates != nil {
			r.tell(who, now, backoff.Verdict{}) // a session without OnSession is ready at once
		}
	case doomed:
		r.fail(c, who, now, backoff.Verdict{Class: backoff.ClassOverload})
	case turningAway:
		r.fail(c, who, now, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: r.server.told})
	}
}

// dial begins a try, whose limits count from now on.
func (r *run) dial(c *client, who int32, now int64) {
	r.dialled(now)
	c.began, c.limit, c.syns = now, now+c.limit, 0
	r.knock(c, who, now)
}

// knock sends a SYN.
func (r *run) knock(c *client, who int32, now int64) {
	r.syns++
	c.syns++
	full := r.server.full(now)
	if now >= r.server.back {
		switch {
		case !full:
			r.join(c, who, now)
		case r.server.queue == Reject:
			r.refuse(c, who, now)
		case r.server.queue == Busy:
			r.turnAway(c, who, now)
		default:
			r.ignore(c, who)
		}
		return
	}
	switch r.Outage.Down {
	case Refused:
		r.refuse(c, who, now)
	case Unavailable:
		r.turnAway(c, who, now)
	case Swallowed:
		r.handshake(c, who, now)
		c.state = doomed
		r.at(c, who, c.limit)
	case Stopped:
		if !full {
			r.join(c, who, now)
			return
		}
		fallthrough
	default:
		r.ignore(c, who)
	}
}

// handshake is the end of connecting: from now on the other limit counts.
func (r *run) handshake(c *client, who int32, now int64) {
	if !r.Client.Whole {
		c.limit = now + int64(r.keepers[who].grace)
	}
}

// join waits in the queue, for as long as patience lasts.
func (r *run) join(c *client, who int32, now int64) {
	r.handshake(c, who, now)
	served := r.server.join(now)
	if served <= c.limit {
		c.state = queued
		r.at(c, who, served)
		return
	}
	r.wasted++
	c.state = doomed
	r.at(c, who, c.limit)
}

func (r *run) refuse(c *client, who int32, now int64) {
	r.refused++
	r.fail(c, who, now, backoff.Verdict{Class: backoff.ClassRetry})
}

func (r *run) turnAway(c *client, who int32, now int64) {
	r.refused++
	r.handshake(c, who, now)
	c.state = turningAway
	answered := r.server.turnAway(now)
	if answered > c.limit {
		c.state, answered = doomed, c.limit
	}
	r.at(c, who, answered)
}

// ignore drops a SYN: the kernel sends the next one 1, 3, 7, 15 s after the first
// (RFC 6298 5.5 with an initial timeout of 1 s, as Linux does it).
func (r *run) ignore(c *client, who int32) {
	c.state = unanswered
	next := c.began + (int64(1)<<min(c.syns, 30)-1)*int64(time.Second)
	r.at(c, who, min(next, c.limit))
}

// clock is a moment of virtual time.
func clock(ns int64) time.Time { return time.Unix(1<<30, ns) }

func orDefault(d, other time.Duration) time.Duration {
	if d <= 0 {
		return other
	}
	return d
}
