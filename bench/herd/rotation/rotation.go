package rotation

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Drawn is the library's From.
const Drawn = 0.9

// Options are one run. Zero fields have the defaults.
type Options struct {
	Clients int           // default 10,000, at most a million
	After   time.Duration // default 24 h
	From    float64       // above 0, at most 1; default Drawn
	Waves   int           // how often each client rotates; default 1, at most 100
	Seed    uint64        // of all random numbers
}

const (
	mostClients = 1_000_000
	mostWaves   = 100
	mostAfter   = 365 * 24 * time.Hour
)

func (o Options) withDefaults() (Options, error) {
	o.Clients, o.After = cmp.Or(o.Clients, 10_000), cmp.Or(o.After, 24*time.Hour)
	o.From, o.Waves = cmp.Or(o.From, Drawn), cmp.Or(o.Waves, 1)
	switch {
	case o.Clients < 0 || o.Clients > mostClients:
		return o, fmt.Errorf("want 1 to %d clients, not %d", mostClients, o.Clients)
	case o.After < time.Second || o.After > mostAfter:
		return o, fmt.Errorf("want an age of %v to %v, not %v", time.Second, mostAfter, o.After)
	case !(o.From > 0 && o.From <= 1):
		return o, fmt.Errorf("the age is drawn from a share above 0 and at most 1 of it, not %v", o.From)
	case o.Waves < 0 || o.Waves > mostWaves:
		return o, fmt.Errorf("want 1 to %d rotations of each client, not %d", mostWaves, o.Waves)
	case o.Clients*o.Waves > 10*mostClients:
		return o, errors.New("that are more than 10 million dials")
	}
	return o, nil
}

// Wave is the dials by which each client replaces its nth connection.
type Wave struct {
	N     int
	Dials []time.Duration // since the start of all clients, in order
}

// Peak returns the most dials in a second of the clock, and when that second began.
func (w *Wave) Peak() (most int, at time.Duration) {
	n := 0
	for i, d := range w.Dials {
		if i > 0 && d/time.Second == w.Dials[i-1]/time.Second {
			n++
		} else {
			n = 1
		}
		if n > most {
			most, at = n, d.Truncate(time.Second)
		}
	}
	return most, at
}

// Span returns the time from the first dial to the last.
func (w *Wave) Span() time.Duration { return w.Dials[len(w.Dials)-1] - w.Dials[0] }

// Run lets the clients rotate. It returns a Wave for each rotation.
func Run(o Options) ([]Wave, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("simulate rotations: %w", err)
	}
	random := rand.New(rand.NewPCG(o.Seed, 0x24))
	age := func() time.Duration {
		return backoff.Uniform(random, time.Duration(o.From*float64(o.After)), o.After)
	}
	waves := make([]Wave, o.Waves)
	var due event.Queue[int] // the number of the rotation
	for range o.Clients {
		due.Push(int64(age()), 0)
	}
	for {
		at, n, ok := due.Pop()
		if !ok {
			return waves, nil
		}
		waves[n].N = n + 1
		waves[n].Dials = append(waves[n].Dials, time.Duration(at))
		if n+1 < o.Waves {
			due.Push(at+int64(age()), n+1)
		}
	}
}
