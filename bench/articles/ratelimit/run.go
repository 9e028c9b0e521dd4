package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Heed is what a client does with a Retry-After.
type Heed uint8

// The kinds of Heed.
const (
	HeedAdd    Heed = iota // waits for that long and then by its policy, as retry.Loop does
	HeedLonger             // waits for that long, or by its policy if that is longer
	HeedNot                // waits by its policy
)

var heeds = []string{"add", "longer", "not"}

// Heeds returns all that a client can do with a Retry-After.
func Heeds() []Heed { return pick.Kinds[Heed](heeds) }

// String returns "add", "longer" or "not".
func (h Heed) String() string { return pick.Kind(heeds, h) }

// Options are one run. Zero fields have the defaults.
type Options struct {
	Limit   Limit
	Policy  backoff.Policy // of the clients; default backoff.Default()
	Heed    Heed           // default HeedAdd
	Clients int            // each has one call to make; default 1000, at most a million
	Spread  time.Duration  // the first calls come at random times in [0, Spread); default 0: at one instant
	Watch   time.Duration  // for how long it is watched; default 1 h, at most 24 h
	Seed    uint64         // of all random numbers
}

func (o Options) withDefaults() (Options, error) {
	if o.Spread < 0 || o.Watch < 0 {
		return o, errors.New("a time is negative")
	}
	if o.Clients < 0 || o.Clients > mostClients {
		return o, fmt.Errorf("want at most %d clients, not %d", mostClients, o.Clients)
	}
	if o.Watch > mostWatch {
		return o, fmt.Errorf("the watch must be at most %v, not %v", mostWatch, o.Watch)
	}
	if int(o.Heed) >= len(heeds) {
		return o, fmt.Errorf("there is no such Heed: %v", o.Heed)
	}
	if o.Policy == nil {
		o.Policy = backoff.Default()
	}
	o.Clients, o.Watch = cmp.Or(o.Clients, 1000), cmp.Or(o.Watch, time.Hour)
	var err error
	o.Limit, err = o.Limit.withDefaults()
	return o, err
}

const (
	mostWatch   = 24 * time.Hour
	mostClients = 1_000_000
)

// Validate returns an error that names what is wrong with o.
func (o Options) Validate() error {
	_, err := o.withDefaults()
	return err
}

// Never is the time of what did not happen while it was watched.
const Never = time.Duration(math.MaxInt64)

// Bin is how long a Bin of a Result is.
const Bin = 100 * time.Millisecond

// Result is what a run has shown. Times count from the first call's window.
type Result struct {
	Options Options         // with the defaults
	Done    []time.Duration // when each client that succeeded did, in order
	Calls   int
	Vain    int   // of the calls: answered with 429
	GaveUp  int   // clients whose policy gave up
	Bins    []int // calls, by Bin
}

// After returns when a share of all clients had succeeded, or Never.
func (y *Result) After(share float64) time.Duration {
	n := int(math.Ceil(share*float64(y.Options.Clients))) - 1
	if n >= len(y.Done) {
		return Never
	}
	return y.Done[max(n, 0)]
}

// Peak returns the most calls in a Bin.
func (y *Result) Peak() (most int) {
	for _, n := range y.Bins {
		most = max(most, n)
	}
	return most
}

// Run lets clients call until each has succeeded or the watch is over. When ctx ends it
// returns its cause.
func Run(ctx context.Context, o Options) (*Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("simulate calls: %w", err)
	}
	api, err := o.Limit.New()
	if err != nil {
		return nil, err
	}
	r := &run{o: o, api: api, rand: rand.New(rand.NewPCG(o.Seed, 0x429)), outages: make([]schedule.Outage, o.Clients)}
	for i := range o.Clients {
		r.due.Push(int64(backoff.Uniform(r.rand, 0, o.Spread)), uint32(i))
	}
	for n := 0; ; n++ {
		at, id, ok := r.due.Pop()
		if !ok || at >= int64(o.Watch) {
			r.y.Options = o
			return &r.y, nil
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r.call(time.Duration(at), id)
	}
}

// run is the state of one Run.
type run struct {
	o       Options
	api     *API
	rand    *rand.Rand
	due     event.Queue[uint32] // clients, by the time of their next call
	outages []schedule.Outage
	y       Result
}

// call is one of a client.
func (r *run) call(now time.Duration, id uint32) {
	r.y.Calls++
	for len(r.y.Bins) <= int(now/Bin) {
		r.y.Bins = append(r.y.Bins, 0)
	}
	r.y.Bins[now/Bin]++
	ok, after := r.api.Call(now)
	if ok {
		r.y.Done = append(r.y.Done, now)
		return
	}
	r.y.Vain++
	v := backoff.Verdict{Class: backoff.ClassOverload} // what backoff.Classify makes of 429
	if r.o.Heed == HeedAdd {
		v.RetryAfter = after
	}
	outage := &r.outages[id]
	step, again := outage.Next(r.o.Policy, v, time.Unix(0, int64(now)), r.rand)
	if !again {
		r.y.GaveUp++
		return
	}
	wait := outage.History().Verdict.RetryAfter + step.Wait
	if r.o.Heed == HeedLonger {
		wait = max(after, step.Wait)
	}
	// A wait of nothing would call again for ever at one instant.
	r.due.Push(int64(now+max(wait, shortest)), id)
}

// shortest is the shortest time between two calls of a client.
const shortest = time.Millisecond
