package drain

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// Options are one drain. Zero fields have the defaults.
type Options struct {
	Clients  int           // default 10,000, at most a million
	Window   time.Duration // the time that the server has; default 60 s, at most 24 h
	Capacity float64       // handshakes that the other servers complete per second; default 500
	RTT      time.Duration // a message and its answer; default 50 ms, negative: 0, at most 10 s
	Client   fleet.Client  // default: the library's
	Seed     uint64        // of all random numbers
}

const (
	mostClients = 1_000_000
	mostWindow  = 24 * time.Hour
	mostRTT     = 10 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	o.Clients, o.Window = cmp.Or(o.Clients, 10_000), cmp.Or(o.Window, time.Minute)
	o.Capacity, o.RTT = cmp.Or(o.Capacity, 500), cmp.Or(o.RTT, 50*time.Millisecond)
	o.RTT = max(o.RTT, 0)
	switch {
	case o.Clients < 0 || o.Clients > mostClients:
		return o, fmt.Errorf("want 1 to %d clients, not %d", mostClients, o.Clients)
	case o.Window < time.Second || o.Window > mostWindow:
		return o, fmt.Errorf("want a window of %v to %v, not %v", time.Second, mostWindow, o.Window)
	case o.RTT > mostRTT:
		return o, fmt.Errorf("want a round trip of at most %v, not %v", mostRTT, o.RTT)
	}
	return o, nil
}

// Result is what came of one drain. Its times are from the beginning of the drain.
type Result struct {
	Closed    time.Duration   // when the last connection to the old server was closed, or replaced if that is later
	Peak      int             // the most dials in 100 ms
	Away      time.Duration   // the longest time for which a client was away; fleet.Never: it was not back in time
	Mean      time.Duration   // the mean of that over all clients; fleet.Never likewise
	MostAway  int             // the most clients that were away at the end of a 100 ms
	Back      time.Duration   // when the last client was back; fleet.Never likewise
	Watch     time.Duration   // how long it was watched
	Dials     []int32         // in each 100 ms
	Cut       int             // clients that were away at all
	PerClient float64         // dials
	AwayTimes []time.Duration // of each client, sorted
}

// Run lets a server drain in a way. Its only error, but for bad Options, is the end of ctx.
func Run(ctx context.Context, o Options, w Way) (*Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("simulate a drain: %w", err)
	}
	leaves := w.Leaves(o, rand.New(rand.NewPCG(o.Seed, 0x647261_696e)))
	last := time.Duration(0)
	for _, l := range leaves {
		last = max(last, l.Close)
	}
	h := fleet.Herd{
		N: o.Clients, Leaves: leaves, Seed: o.Seed,
		Groups: []fleet.Group{{Client: o.Client, Share: 1, RTT: o.RTT}},
		Server: fleet.Server{Capacity: o.Capacity, Queue: fleet.Drop},
	}
	h.Watch = last + 10*time.Minute + 12*h.Ideal()
	f, err := fleet.Run(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("simulate a drain: %w", err)
	}
	r := &Result{
		Closed: last, Peak: f.Peak, Away: fleet.Quantile(f.Away, 1), Mean: fleet.Mean(f.Away), Back: f.T100,
		Watch: f.Watch, Dials: f.DialsPerBin, PerClient: f.Dials, AwayTimes: f.Away,
	}
	if w.Replaces {
		r.Closed = f.T100
	}
	for _, up := range f.UpPerBin {
		r.MostAway = max(r.MostAway, o.Clients-int(up))
	}
	for _, away := range f.Away {
		if away != 0 {
			r.Cut++
		}
	}
	return r, nil
}
