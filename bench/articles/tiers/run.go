package tiers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// Setup is one run of the simulation.
type Setup struct {
	Scenario Scenario
	Strategy Strategy
	RPS      int    // calls per second; 0: the scenario's
	Seed     uint64 // of all random numbers
}

// maxCalls keeps a run within a few GB and a few minutes.
const maxCalls = 20_000_000

// Validate returns an error that names what is wrong with o, if anything is.
func (o *Setup) Validate() error {
	s := &o.Scenario
	err := func(format string, a ...any) error {
		return fmt.Errorf("simulate %s: %w", s.Name, fmt.Errorf(format, a...))
	}
	rps := cmp.Or(o.RPS, s.RPS)
	switch {
	case s.Length <= 0:
		return err("want a length above 0, not %v", s.Length)
	case rps < 1 || float64(rps)*s.Length.Seconds() > maxCalls:
		return err("want 1 to %d calls per second, not %d", int(maxCalls/s.Length.Seconds()), rps)
	case len(s.Tiers) == 0 || len(s.Tiers) > 10:
		return err("want 1 to 10 tiers, not %d", len(s.Tiers))
	case len(o.Strategy.Callers) != len(s.Tiers):
		return err("strategy %s has %d callers for %d tiers", o.Strategy.Name, len(o.Strategy.Callers), len(s.Tiers))
	case s.Bucket <= 0 || s.Bucket > s.Length:
		return err("want buckets of more than 0 to %v, not %v", s.Length, s.Bucket)
	}
	if a := o.Strategy.Admission; a != nil && (a.Every <= 0 || a.Share < 0 || a.Step < 0) {
		return err("strategy %s: admission needs time between its steps, and no negative share or step", o.Strategy.Name)
	}
	for _, t := range s.Tiers {
		if t.Timeout <= 0 || t.Service <= 0 || t.Capacity <= 0 || t.Queue < 0 {
			return err("tier %s needs a timeout, a service time and a capacity above 0, and no negative queue", t.Name)
		}
		if bad := t.Scaling.check(); bad != nil {
			return err("tier %s: %w", t.Name, bad)
		}
	}
	for i := range o.Strategy.Callers {
		c := &o.Strategy.Callers[i]
		bad := c.Check()
		if c.Person != nil {
			bad = cmp.Or(bad, c.Person.check())
		}
		if bad != nil {
			return err("strategy %s, caller of %s: %w", o.Strategy.Name, s.Tiers[i].Name, bad)
		}
	}
	return nil
}

// Run runs the simulation until the last call has ended. The error names what is wrong
// with the Setup; when ctx ends first it is the context's cause.
func Run(ctx context.Context, o Setup) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.RPS = cmp.Or(o.RPS, o.Scenario.RPS)
	r, err := newRun(&o)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", o.Strategy.Name, err)
	}
	for n := 0; r.step(); n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(r.idle) != len(r.calls) {
		return nil, errors.New("simulate: a call has not ended; this is a mistake of the simulation")
	}
	r.result.close()
	return r.result, nil
}

// run is the state of one simulation. Everything in it belongs to the goroutine that calls
// step.
type run struct {
	setup  *Setup
	rand   *rand.Rand
	now    int64 // ns since the start
	result *Result

	arrival  int64 // of the next call from outside; -1: none comes
	left     int   // calls from outside that have not arrived yet
	calls    []call
	idle     []uint32              // calls that have ended and may be used again
	policies []backoff.Policy      // of the callers of each tier
	budgets  []retry.Budget        // of the callers of each tier; nil: none
	events   event.Queue[due]      // what is neither a timeout nor an arrival from outside
	expiry   []event.FIFO[request] // of the requests to each tier
	servers  []server              // of each tier
}

// due is what happens next to a request, or to the call that it names.
type due struct {
	kind kind
	request
}

type kind uint8

const (
	kindServed  kind = iota // the tier has done its own work on the request
	kindReached             // the request is at its tier
	kindTurned              // the request was turned away before the first tier
	kindAwake               // the call sends its next request
	kindScale               // it is decided how many CPUs the tier that is named should have
	kindGrown               // the tier has so many more
)

func newRun(o *Setup) (*run, error) {
	s := &o.Scenario
	r := &run{
		setup:   o,
		rand:    rand.New(rand.NewPCG(o.Seed, 0x3713)), // a stream of its own for this model
		left:    int(s.Length.Seconds()*float64(o.RPS) + 0.5),
		budgets: make([]retry.Budget, len(s.Tiers)),
		expiry:  make([]event.FIFO[request], len(s.Tiers)),
		result:  newResult(o),
	}
	for i := range s.Tiers {
		r.servers = append(r.servers, newServer(&s.Tiers[i], o.RPS))
		if c := r.servers[i].scaler; c != nil {
			r.events.Push(int64(c.Every), due{kindScale, request{call: uint32(i)}})
		}
		r.result.sizes = append(r.result.sizes, size{tier: i, cpus: r.servers[i].cpus})
		c := &o.Strategy.Callers[i]
		policy, err := c.Policy()
		if err != nil {
			return nil, err
		}
		r.policies = append(r.policies, policy)
		if r.budgets[i], err = c.NewBudget(func() time.Time { return time.Unix(0, r.now) }); err != nil {
			return nil, err
		}
	}
	r.arrive()
	return r, nil
}

// arrive draws when the next call comes from outside.
func (r *run) arrive() {
	r.arrival = -1
	if r.left > 0 {
		r.left--
		r.arrival = r.now + r.exponential(float64(time.Second)/float64(r.setup.RPS))
	}
}

// exponential draws from Exp with a mean in ns.
func (r *run) exponential(mean float64) int64 {
	return int64(r.rand.ExpFloat64() * mean)
}

// step lets the next event happen. It returns false if there is none.
func (r *run) step() bool {
	at, expired, arrived := int64(1<<63-1), -1, false
	t, ok := r.events.Next()
	if ok {
		at = t
	}
	for i := range r.expiry {
		if t, some := r.expiry[i].Next(); some && t < at {
			at, expired, ok = t, i, true
		}
	}
	if r.arrival >= 0 && r.arrival < at {
		at, arrived, ok = r.arrival, true, true
	}
	if !ok {
		return false
	}
	r.now = at
	switch {
	case arrived:
		r.result.at(at).Arrived++
		r.begin(0, request{}, false)
		r.arrive()
	case expired >= 0:
		_, q, _ := r.expiry[expired].Pop()
		r.expire(q)
	default:
		_, e, _ := r.events.Pop()
		r.happen(e)
	}
	return true
}

func (r *run) happen(e due) {
	switch e.kind {
	case kindServed:
		r.served(e.request)
	case kindReached:
		r.reach(e.request)
	case kindTurned:
		r.answer(e.request, false, false)
	case kindAwake:
		r.send(e.call)
	case kindScale:
		r.scale(int(e.call))
	case kindGrown:
		r.grown(int(e.call), int(e.serial))
	}
}
