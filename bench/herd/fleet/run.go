package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Run simulates how the herd comes back, in virtual time. It ends early when all are up and
// nothing more is to happen. The only error, but for a bad Herd, is the end of
// ctx.
func Run(ctx context.Context, h Herd) (*Result, error) {
	h, err := h.withDefaults()
	if err != nil {
		return nil, err
	}
	r := newRun(h)
	r.begin()
	for n := 0; r.now < h.N || r.spells > 0 || r.leaving > 0; n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		at, who, ok := r.events.pop()
		if !ok || at >= int64(h.Watch) {
			break
		}
		if who < 0 {
			r.other(at, who)
		} else if c := &r.clients[who]; c.due == at {
			c.due = never
			r.step(c, who, at)
		}
	}
	return r.result(), nil
}

// other is what was due for none of the clients.
func (r *run) other(at int64, who int32) {
	const n = maxServers
	switch k := -1 - who; {
	case k < n:
		r.spells--
		r.turn(uint8(k), at)
	case k < 2*n:
		r.serve(uint8(k-n), at)
	default:
		if line := int(k - 2*n); r.gates.lines[line].rings == at {
			r.gates.lines[line].rings = -1
			r.open(line, at)
		}
	}
}

// The servers, their queues and the processes have events too. Their numbers are below 0;
// clients have the others.
func theServer(k uint8) (who int32) { return -1 - int32(k) }
func theQueue(k uint8) (who int32)  { return -1 - maxServers - int32(k) }
func process(line int) (who int32)  { return -1 - 2*maxServers - int32(line) }

const maxServers = 64

// run is the state of one Run.
type run struct {
	Herd
	rand        *rand.Rand
	events      events
	servers     []server
	clients     []client
	supervisors []schedule.Dials // of the clients
	marks       []uint64         // of the clients: the servers whose handshakes hung; nil: clients cannot tell servers apart
	gates       *gates           // nil: there are none
	spells      int              // still to come
	leaving     int              // connections that have not left yet
	counter
}

func newRun(h Herd) *run {
	r := &run{
		Herd:        h,
		rand:        rand.New(rand.NewPCG(h.Seed, 0x726564_69616c)),
		servers:     make([]server, h.Server.Count),
		clients:     make([]client, h.N),
		supervisors: make([]schedule.Dials, h.N),
		events:      newEvents(int64(h.Watch)),
		counter:     newCounter(h.N, h.Watch),
	}
	if h.Server.Apart {
		r.marks = make([]uint64, h.N)
	}
	for k := range r.servers {
		r.servers[k] = newServer(h.Server)
	}
	sum, group := h.Groups[0].Share, 0
	options := make([]*schedule.DialOptions, len(h.Groups))
	for g := range options {
		options[g] = h.Groups[g].Client.options()
	}
	for i := range r.clients {
		for group < len(h.Groups)-1 && float64(i) >= sum*float64(h.N) {
			group++
			sum += h.Groups[group].Share
		}
		r.clients[i] = client{due: never, timer: never, since: -longAgo, group: uint8(group), home: uint8(i % h.Server.Count)}
		r.supervisors[i] = schedule.NewDials(options[group], r.rand)
	}
	r.gates = newGates(r)
	return r
}

// options are those of c for its Dials.
func (c *Client) options() *schedule.DialOptions {
	p := c.Policy
	if p == nil {
		p = &backoff.Adaptive{}
	}
	if c.Whole {
		p = whole{p}
	}
	o := schedule.DialOptions{Policy: p, OneConnection: c.OneConnection, StartSpread: c.StartSpread, StableAfter: c.StableAfter, Credit: c.Credit}
	return o.WithDefaults()
}

// whole is a policy whose limits on the handshake mean nothing.
type whole struct{ backoff.Policy }

func (w whole) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	s, ok := w.Policy.Next(a, r)
	s.Handshake = time.Duration(never) / 4
	return s, ok
}

// longAgo is since when the connections have been up that are lost at 0.
const longAgo = int64(24 * time.Hour)

// begin is the first loss, or the start of all.
func (r *run) begin() {
	for k := range r.servers {
		s := &r.servers[k]
		s.down = Up
		s.spells = append([]Spell(nil), r.Outage.spells()...)
		for i := range s.spells {
			if sp := &s.spells[i]; sp.Spread > 0 {
				sp.Length += backoff.Uniform(r.rand, 0, sp.Spread)
			}
		}
		if wait := time.Duration(k) * r.Server.Rolling; wait > 0 {
			s.spells = append([]Spell{{Down: Up, Length: wait}}, s.spells...)
		}
		r.spells += len(s.spells)
		r.lastReturn = max(r.lastReturn, int64(total(s.spells)))
	}
	for k := range r.servers {
		r.turn(uint8(k), 0)
	}
	if r.Leaves != nil {
		r.leave()
	}
	if r.Fresh {
		for i := range r.clients {
			c := &r.clients[i]
			r.ups(0, -1)
			c.state, c.since = away, 0
			r.supervisors[i].Start(clock(0))
			r.act(c, int32(i), 0)
		}
	}
}

func total(spells []Spell) (sum time.Duration) {
	for _, s := range spells {
		sum += s.Length
	}
	return sum
}

// turn begins the next spell of a server.
func (r *run) turn(k uint8, now int64) {
	s := &r.servers[k]
	if now >= r.lastReturn && !r.settled {
		r.settle(now)
	}
	before := s.down
	s.down = Up
	if len(s.spells) > 0 {
		s.down = s.spells[0].Down
		r.events.push(now+int64(s.spells[0].Length), theServer(k))
	}
	if s.down != Up {
		back := now
		for i := 0; i < len(s.spells) && s.spells[i].Down != Up; i++ {
			back += int64(s.spells[i].Length)
		}
		s.die(now, back)
		r.die(k, now, before == Up)
	}
	s.spells = s.spells[min(1, len(s.spells)):]
}

// die is the death of a server: sessions are lost, those in its queue are
// reset, and dials meet what Down says from now on. A client
// whose SYNs are not answered goes on sending them.
func (r *run) die(k uint8, now int64, sessions bool) {
	if sessions {
		r.died(now, r.servers[k].back)
	}
	for i := range r.clients {
		c, who := &r.clients[i], int32(i)
		if c.state == connected && c.home == k && sessions && !(now == 0 && r.Fresh) {
			r.lose(c, who, now)
			continue
		}
		if c.state != away {
			continue
		}
		hit := false
		for j := range c.dials {
			x := &c.dials[j]
			if x.server != k {
				continue
			}
			if x.state == queued || x.state == turningAway || x.state == waiting && x.limit != never {
				r.fail(c, who, j, now, refused)
				hit = true
			}
		}
		if hit {
			r.act(c, who, now)
		}
	}
}

// lose is the end of a session.
func (r *run) lose(c *client, who int32, now int64) {
	r.ups(now, -1)
	ready := now - c.since
	c.since = now
	if late := r.Groups[c.group].Late; late > 0 {
		c.state, c.timer = unaware, now+int64(late)
		c.dials[0].limit = ready // what it has to know then
		r.plan(c, who)
		return
	}
	r.end(c, who, time.Duration(ready), now)
}

func (r *run) end(c *client, who int32, ready time.Duration, now int64) {
	v := retry
	if r.Outage.Loss == CloseLater {
		v = overload
	}
	if r.Leaves != nil {
		v.RetryAfter = r.Leaves[who].Told
	}
	c.state = away
	r.supervisors[who].Ended(v, ready, clock(now))
	r.act(c, who, now)
}

// clock is a moment of virtual time.
func clock(ns int64) time.Time { return time.Unix(1<<30, ns) }

// since is the inverse of clock.
func since(t time.Time) int64 { return int64(t.Sub(clock(0))) }
