package storm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// WarmUp is how long a storm runs well before its server is stopped, simulated and
// on real sockets alike: a client that waits in proportion to its last pause, as
// Coded does, has by then paused for as long as the mean, Think, and more.
const WarmUp = 15 * time.Second

// Options are one run. Zero fields have the original's values.
type Options struct {
	Client  Client
	Server  Server
	Clients int           // default 1000
	Think   time.Duration // mean of a client's pause after a success, which is Exp; default 10 s
	Timeout time.Duration // of a request; default 2 s
	Backlog int           // of connections while the server is stopped; default 4096, Linux's
	Before  time.Duration // until the server is stopped; default WarmUp; negative: at once
	Stop    time.Duration // for how long; 0: not at all
	Watch   time.Duration // for how long it is watched afterwards; default 10 min
	Seed    uint64        // of all random numbers
}

// WithDefaults returns o with its defaults. The error names what is wrong.
func (o Options) WithDefaults() (Options, error) {
	for _, d := range []time.Duration{o.Think, o.Timeout, o.Stop, o.Watch} {
		if d < 0 {
			return o, fmt.Errorf("simulate storm: negative time %v", d)
		}
	}
	if o.Clients < 0 || o.Backlog < 0 {
		return o, fmt.Errorf("simulate storm: negative number of clients or backlog")
	}
	if _, err := o.Client.Policy(); err != nil {
		return o, fmt.Errorf("simulate storm: %w", err)
	}
	var err error
	if o.Server, err = o.Server.WithDefaults(); err != nil {
		return o, fmt.Errorf("simulate storm: %w", err)
	}
	o.Clients = cmp.Or(o.Clients, 1000)
	o.Think = cmp.Or(o.Think, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Backlog = cmp.Or(o.Backlog, 4096)
	o.Before = max(cmp.Or(o.Before, WarmUp), 0)
	o.Watch = cmp.Or(o.Watch, 10*time.Minute)
	return o, nil
}

// Run simulates one run. The same Options give the same Result on every machine.
// Once no request can end before the watch does, Run no longer polls the server, so that a
// long watch of a server that stays down costs little. The clients continue.
func Run(o Options) (*Result, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	r := &run{o: o, rand: rand.New(rand.NewPCG(o.Seed, 0x004))} // a stream of its own for this model
	r.stop = int64(o.Before)
	r.resume = r.stop + int64(o.Stop)
	r.end = r.resume + int64(o.Watch)
	r.server = serverState{Server: o.Server, limit: o.Backlog}
	r.clients = make([]client, o.Clients)
	for i := range r.clients {
		if r.clients[i].policy, err = o.Client.Policy(); err != nil {
			return nil, err
		}
		r.think(uint32(i))
	}
	for r.step() {
	}
	return r.result(), nil
}

// run is the state of one run. It belongs to the goroutine that calls step.
type run struct {
	o                 Options
	rand              *rand.Rand
	now               int64 // ns since the start
	stop, resume, end int64
	phase             int // 0 before the stop, 1 in it, 2 after it
	clients           []client
	awake             event.Queue[uint32] // clients whose pause ends
	timeouts          event.FIFO[visit]
	server            serverState
	seconds           []Second
	total             Result
}

// client is one of them.
type client struct {
	policy  backoff.Policy
	outage  schedule.Outage
	serial  uint32 // of the request that it waits for
	waits   bool   // it does wait for one
	arrears bool   // it has not succeeded since the server goes on, and had failed
}

// step lets the next event happen. It returns false at the end.
func (r *run) step() bool {
	const polled, woken, late, stopped, resumed = 0, 1, 2, 3, 4
	kind, at := -1, r.end
	if t, ok := r.server.polls.Next(); ok && !r.server.stopped && t < at && !r.server.stuck(r.end) {
		kind, at = polled, t
	}
	if t, ok := r.awake.Next(); ok && t < at {
		kind, at = woken, t
	}
	if t, ok := r.timeouts.Next(); ok && t < at {
		kind, at = late, t
	}
	switch {
	case r.phase == 0 && r.stop <= at:
		kind, at = stopped, r.stop
	case r.phase == 1 && r.resume <= at:
		kind, at = resumed, r.resume
	}
	r.now = max(r.now, at) // polls that came due in the stop come after it
	switch kind {
	case polled:
		if p, done := r.server.poll(r.now); done {
			r.done(p.visit)
		}
	case woken:
		_, id, _ := r.awake.Pop()
		r.request(id)
	case late:
		_, v, _ := r.timeouts.Pop()
		r.expire(v)
	case stopped:
		r.phase, r.server.stopped = 1, r.o.Stop > 0
	case resumed:
		r.phase = 2
		r.server.resume(r.now)
		r.total.Backlog = r.server.n()
	}
	return kind >= 0
}

// request sends a request of a client.
func (r *run) request(id uint32) {
	c := &r.clients[id]
	c.serial++
	c.waits = true
	v := visit{id, c.serial}
	r.second().Sent++
	if !r.server.accept(r.now, v) {
		r.total.Lost++
	}
	r.timeouts.Push(r.now+int64(r.o.Timeout), v)
}

// done is the end of a request at the server.
func (r *run) done(v visit) {
	c := &r.clients[v.client]
	if !c.waits || c.serial != v.serial {
		r.total.Wasted++
		return
	}
	r.second().OK++
	c.waits = false
	c.outage = schedule.Outage{}
	if c.arrears && r.phase == 2 {
		c.arrears = false
		r.total.Everyone = time.Duration(r.now - r.resume)
	}
	r.think(v.client)
}

// expire is the end of a client's patience.
func (r *run) expire(v visit) {
	c := &r.clients[v.client]
	if !c.waits || c.serial != v.serial {
		return
	}
	r.second().TimedOut++
	c.waits, c.arrears = false, true
	step, again := c.outage.Next(c.policy, backoff.Verdict{Class: backoff.ClassOverload}, time.Unix(0, r.now), r.rand)
	if !again {
		r.total.GaveUp++
		c.outage = schedule.Outage{}
		r.think(v.client)
		return
	}
	r.awake.Push(r.now+int64(step.Wait), v.client)
}

// think lets a client pause after a success, or when it has given up.
func (r *run) think(id uint32) {
	d := time.Duration(r.rand.ExpFloat64() * float64(r.o.Think))
	if coded, ok := r.clients[id].policy.(*AsCoded); ok {
		coded.Think(d)
	}
	r.awake.Push(r.now+int64(d), id)
}
