package queueing

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// Setup is one run of the simulation.
type Setup struct {
	Scenario Scenario
	Strategy Strategy
	RPS      int           // calls per second; the article's pictures have 300,000
	Seed     uint64        // of all random numbers
	Bucket   time.Duration // length of a [Bucket]; 0: 50 ms
}

// How many calls fit into a few GB: per second, and in all.
const (
	maxRPS   = 10_000_000
	maxCalls = 50_000_000
)

// Validate returns an error that names what is wrong with o, if anything is.
func (o *Setup) Validate() error {
	switch {
	case o.RPS < 1 || o.RPS > maxRPS:
		return fmt.Errorf("simulate %s: want 1 to %d calls per second, not %d", o.Scenario.Name, maxRPS, o.RPS)
	case o.Bucket != 0 && (o.Bucket < ms || o.Bucket > o.Scenario.Length):
		return fmt.Errorf("simulate %s: want buckets of 1ms to %v, not %v", o.Scenario.Name, o.Scenario.Length, o.Bucket)
	case float64(o.RPS)*o.Scenario.Length.Seconds() > maxCalls:
		return fmt.Errorf("simulate %s: %d calls per second for %v are more than %d", o.Scenario.Name, o.RPS, o.Scenario.Length, maxCalls)
	}
	return nil
}

// Run runs the simulation until the last call has ended. The same Setup gives the
// same Result on every machine. The error names what is wrong with the Setup.
func Run(o Setup) (*Result, error) { return runUntil(context.Background(), o) }

// runUntil is Run that ends with ctx, with the context's cause. A run that takes less than a second or
// so runs to its end, since its result is worth having.
func runUntil(ctx context.Context, o Setup) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Bucket == 0 {
		o.Bucket = 50 * ms
	}
	r, err := newRun(&o)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", o.Strategy.Name, err)
	}
	for n := 1; r.step(); n++ {
		if n&0xfffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return r.meter.result(&o, r.cpus), nil
}

// run is the state of one simulation. Everything in it belongs to the goroutine
// that calls step.
type run struct {
	scenario *Scenario
	strategy *Strategy
	policy   backoff.Policy
	rand     *rand.Rand
	now      int64 // ns since the start
	meter    meter

	// The callers; see call.go.
	gap      float64              // mean time in ns between two calls
	arrival  int64                // of the next call
	left     int                  // calls that have not arrived yet
	permits  int                  // that are free; unlimited in an open loop
	limited  bool                 // there is a limit to them
	waiting  event.FIFO[struct{}] // calls that wait for a permit; nothing else is known of them yet than when they arrived
	calls    []call
	arrived  []int64 // ns; when each call arrived; empty without a limit, since it begins then
	hosts    hosts
	outages  []schedule.Outage // what the policy knows of each call
	leaves   []leave           // of each call; empty without a budget
	idle     []uint32          // calls that have ended and may be used again
	budgets  []retry.Budget
	sleepers event.Queue[uint32]
	timeouts []event.FIFO[request] // one for each of the scenario's timeouts

	// The network and the server; see server.go.
	network network
	queue   event.FIFO[request]
	service event.Queue[served] // by the end of its service
	cpus    int
	busy    int
	door    *door // nil: open
}

// request is one try of a call: its answer counts while serial is the call's.
type request struct{ call, serial uint32 }

func newRun(o *Setup) (*run, error) {
	scenario := o.Scenario.withDefaults()
	s := &scenario
	policy, err := o.Strategy.Policy()
	if err != nil {
		return nil, err
	}
	r := &run{
		scenario: s,
		strategy: &o.Strategy,
		policy:   policy,
		rand:     rand.New(rand.NewPCG(o.Seed, 0x002)), // a stream of its own for this model
		gap:      float64(time.Second) / float64(o.RPS),
		left:     int(float64(s.Length.Seconds()*float64(o.RPS)) + 0.5),
		permits:  permits(cmp.Or(o.Strategy.Limit, s.Limit), o.RPS),
		limited:  o.Strategy.Limit > 0 || s.Limit > 0,
		hosts:    newHosts(s.Hosts, o.Strategy.Eject),
		timeouts: make([]event.FIFO[request], len(s.Timeouts)),
		cpus:     s.CPUs(o.RPS),
		meter:    newMeter(s.Length, o.Bucket),
	}
	r.network = network{rand: r.rand, mean: float64(s.Trip)}
	r.door = newDoor(&o.Strategy, r.cpus, o.RPS, s.Latency)
	if !r.limited {
		r.permits = math.MaxInt
	}
	clients := 1
	if o.Strategy.Local {
		clients = max(1, o.RPS/localRate)
	}
	for range clients {
		b, err := o.Strategy.NewBudget(func() time.Time { return time.Unix(0, r.now) })
		if err != nil {
			return nil, err
		}
		if b != nil {
			r.budgets = append(r.budgets, b)
		}
	}
	r.arrive()
	return r, nil
}

// Kinds of events, in the order in which those of one instant happen.
const (
	kindServed = iota
	kindReached
	kindAwake
	kindArrived
	kindTimeout // and those that follow: one for each timeout
)

// step lets the next event happen. It returns false if there is none.
func (r *run) step() bool {
	kind, at := r.next()
	if kind < 0 {
		return false
	}
	r.now = at
	switch kind {
	case kindServed:
		_, v, _ := r.service.Pop()
		r.finish(v)
	case kindReached:
		r.reach(r.network.pop(at))
	case kindAwake:
		_, c, _ := r.sleepers.Pop()
		r.send(c)
	case kindArrived:
		r.waiting.Push(at, struct{}{})
		r.meter.arrive(at)
		r.arrive()
	default:
		_, q, _ := r.timeouts[kind-kindTimeout].Pop()
		r.expire(q)
	}
	for r.waiting.Len() > 0 && r.permits > 0 {
		arrived, _, _ := r.waiting.Pop()
		r.permits--
		r.begin(arrived)
	}
	return true
}

// next returns which kind of event is due first, and when; -1 if there is none.
func (r *run) next() (kind int, at int64) {
	kind, at = -1, 1<<63-1
	if t, ok := r.service.Next(); ok {
		kind, at = kindServed, t
	}
	if t, ok := r.network.next(); ok && t < at {
		kind, at = kindReached, t
	}
	if t, ok := r.sleepers.Next(); ok && t < at {
		kind, at = kindAwake, t
	}
	if r.arrival < at && r.arrival >= 0 {
		kind, at = kindArrived, r.arrival
	}
	for i := range r.timeouts {
		if t, ok := r.timeouts[i].Next(); ok && t < at {
			kind, at = kindTimeout+i, t
		}
	}
	return kind, at
}
