package waits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Outage is how the dials fail that a client makes while its server is away.
type Outage struct {
	Name    string
	Verdict backoff.Verdict // on each dial
	Silent  bool            // a dial takes as long as the policy lets it; else it fails at once
}

// Outages returns those that there are.
func Outages() []Outage {
	return []Outage{
		{Name: "refused", Verdict: backoff.Verdict{Class: backoff.ClassRetry, Refused: true}},
		{Name: "503", Verdict: backoff.Verdict{Class: backoff.ClassOverload}},
		{Name: "silent", Verdict: backoff.Verdict{Class: backoff.ClassOverload}, Silent: true},
	}
}

// Options are what is drawn.
type Options struct {
	Policy  backoff.Policy
	Outage  Outage
	Connect time.Duration // how long a silent dial takes where the policy has no limit; default backoff.DefaultConnect
	Retries int           // at least so many; default 16
	Until   time.Duration // and until one begins later than this; default 5 min
	Seeds   int           // clients; default 1000
	Seed    uint64        // of the first; those that follow count up
}

const (
	most      = 5000       // retries of a client, for a rule that waits for microseconds
	mostDrawn = 20_000_000 // retries of all clients, which take 320 MB
)

var errTooMany = fmt.Errorf("draw waits: want at most %d waits in all: take fewer clients or retries, or a shorter time", mostDrawn)

func (o Options) withDefaults() (Options, error) {
	if o.Policy == nil {
		return o, errors.New("draw waits: there is no policy")
	}
	if o.Connect < 0 || o.Until < 0 || o.Retries < 0 || o.Retries > most || o.Seeds < 0 {
		return o, fmt.Errorf("draw waits: want times and numbers from 0 on, and at most %d retries", most)
	}
	o.Connect = cmp.Or(o.Connect, backoff.DefaultConnect)
	o.Retries = cmp.Or(o.Retries, 16)
	o.Until = cmp.Or(o.Until, 5*time.Minute)
	o.Seeds = cmp.Or(o.Seeds, 1000)
	if o.Seeds > mostDrawn/o.Retries {
		return o, errTooMany
	}
	return o, nil
}

// Validate returns an error that names what is wrong with o.
func (o Options) Validate() error {
	_, err := o.withDefaults()
	return err
}

// Retry is a dial, and the wait before it.
type Retry struct {
	Wait   time.Duration
	Begins time.Duration // since the connection was lost
}

// Result is what was drawn.
type Result struct {
	Options Options // with the defaults
	Clients [][]Retry
}

// Draw lets clients meet an outage that does not end, each with random numbers of its
// own. A client's connection is lost at 0, which costs no dial. When ctx ends it returns its
// cause.
func Draw(ctx context.Context, o Options) (*Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	y := &Result{Options: o, Clients: make([][]Retry, o.Seeds)}
	drawn := 0
	for i := range y.Clients {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if drawn > mostDrawn {
			return nil, errTooMany
		}
		y.Clients[i] = o.client(rand.New(rand.NewPCG(o.Seed+uint64(i), 0x7a17)))
		drawn += len(y.Clients[i])
	}
	return y, nil
}

// client draws the retries of one client.
func (o *Options) client(r *rand.Rand) (all []Retry) {
	var (
		outage schedule.Outage
		start  = time.Unix(0, 0)
		now    time.Duration
	)
	outage.Begin(start)
	v := backoff.Verdict{Class: backoff.ClassRetry} // the loss
	begun := time.Duration(-1)                      // when the last retry began
	for len(all) < most && (len(all) < o.Retries || begun <= o.Until) {
		step, ok := outage.Next(o.Policy, v, start.Add(now), r)
		if !ok {
			break
		}
		now += step.Wait
		begun = now
		all = append(all, Retry{Wait: step.Wait, Begins: begun})
		v = o.Outage.Verdict
		if o.Outage.Silent {
			now += cmp.Or(step.Connect, o.Connect)
		}
	}
	return all
}

// Stats are quantiles and the mean of some values, in seconds where these are times.
type Stats struct {
	P5, Median, P95, Mean float64
	Alike                 float64 // share of the values that are exactly the commonest one
	N                     int     // values; 0: there are none, and the others mean nothing
}

// stats sorts the values.
func stats(values []float64) Stats {
	if len(values) == 0 {
		return Stats{}
	}
	slices.Sort(values)
	sum, alike, row := 0.0, 0, 0
	for i, x := range values {
		sum += x
		if i > 0 && x != values[i-1] {
			row = 0
		}
		row++
		alike = max(alike, row)
	}
	at := func(share float64) float64 { return values[int(share*float64(len(values)-1)+0.5)] }
	n := len(values)
	return Stats{P5: at(0.05), Median: at(0.5), P95: at(0.95), Mean: sum / float64(n), Alike: float64(alike) / float64(n), N: n}
}

// Retry returns the waits before the retry n, from 1 on, and when that begins. Clients that
// have given up before do not count.
func (y *Result) Retry(n int) (wait, begins Stats) {
	var waits, times []float64
	for _, all := range y.Clients {
		if n >= 1 && n <= len(all) {
			waits = append(waits, all[n-1].Wait.Seconds())
			times = append(times, all[n-1].Begins.Seconds())
		}
	}
	return stats(waits), stats(times)
}

// At returns the wait that was drawn last at a time since the loss, and how many retries
// have begun by then. A client counts until its last retry begins.
func (y *Result) At(at time.Duration) (wait, begun Stats) {
	var waits, numbers []float64
	for _, all := range y.Clients {
		next := sort.Search(len(all), func(i int) bool { return all[i].Begins > at })
		if next == len(all) {
			continue // what is drawn next is not known
		}
		numbers = append(numbers, float64(next))
		if last := all[next]; last.Begins-last.Wait > at { // a dial is under way
			waits = append(waits, all[next-1].Wait.Seconds())
		} else {
			waits = append(waits, last.Wait.Seconds())
		}
	}
	return stats(waits), stats(numbers)
}
