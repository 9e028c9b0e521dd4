package lab

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
)

// StormSecond is what happened in a second, or what there was at its end.
type StormSecond struct {
	At       time.Duration // its end, from the start
	Stopped  bool          // the server is; then the two that follow are those before it
	InFlight int           // requests at the server, with those that no client waits for any more
	Delay    time.Duration // of the server with so many
	Waiting  int           // connections in the server's backlog
	OK       int           // requests that succeeded
	TimedOut int           // requests that were given up
	Failed   int           // requests that failed otherwise
	Away     int           // clients that have failed and not succeeded since
}

// StormResult is what a run has shown.
type StormResult struct {
	Seconds   []StormSecond
	Cut       bool          // the user ended it
	Unknown   bool          // it was not seen for stormWell after the server went on, so that nobody knows if it has recovered
	Recovered bool          // from Back until the end, and for stormWell at least, 95 % of the requests that ended succeeded in each stormWell
	Back      time.Duration // from the server's going on
	Away      int           // clients at the end that had failed and not succeeded since
	Peak      int           // the most requests at the server at the end of a second
}

const (
	stormShare = 0.95
	stormWell  = 10 // seconds

	// LeastWatch is how long a storm must be watched at least, so that it can be seen to recover.
	LeastWatch = (stormWell + 1) * time.Second
)

// CheckStorm returns an error that names what is wrong with o, or too much for this process.
func CheckStorm(o storm.Options) error {
	o, err := o.WithDefaults()
	if err != nil {
		return err
	}
	// The server keeps the connections of clients that have left. Five for each client are
	// enough to begin with, and a storm that does not end fills any limit.
	return CheckFiles(fmt.Sprintf("a storm of %d clients", o.Clients), o.Clients, 5)
}

// RunStorm is [storm.Run] on real sockets, where each request has a connection of its own; o.Backlog
// and o.Seed do not matter. It calls each, which may be nil, with each second. A run that is well for
// stormWell, with no client away, ends early. When ctx ends RunStorm returns what was measured, with
// Cut set, and no error.
func RunStorm(ctx context.Context, o storm.Options, each func(StormSecond)) (*StormResult, error) {
	if err := CheckStorm(o); err != nil {
		return nil, err
	}
	o, _ = o.WithDefaults()
	r := &stormRun{Options: o, stormMeter: stormMeter{each: each}}
	server, err := start(setup{Address: "127.0.0.1:0", Storm: &o.Server}, r.hear)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	at, err := server.ask(ctx)
	if err != nil {
		return nil, err
	}
	r.server = server
	clients, err := newStormClients(&r.Options, at.Address, &r.counts)
	if err != nil {
		return nil, err
	}
	defer clients.live(ctx)()
	return r.run(ctx)
}

// stormRun is the state of one run. All but what is atomic belongs to the goroutine of
// RunStorm.
type stormRun struct {
	storm.Options
	stormMeter
	server  *process
	said    atomic.Pointer[report] // the last one of the server
	resumed time.Duration          // when the server went on; 0: not yet
	halted  bool
	result  StormResult
}

func (r *stormRun) hear(p report) { r.said.Store(&p) }

// run takes note each second until it is over.
func (r *stormRun) run(ctx context.Context) (*StormResult, error) {
	r.started = time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	change := time.NewTimer(r.Before)
	defer change.Stop()
	for {
		select {
		case <-ctx.Done():
			r.result.Cut = true
			return r.finish(), nil
		case <-change.C:
			if err := r.turn(change); err != nil {
				return nil, err
			}
		case <-r.server.Gone():
			return nil, errors.New("run storm: the server has ended")
		case now := <-tick.C:
			r.second(now, r.look())
			if r.over() {
				return r.finish(), nil
			}
		}
	}
}

// turn stops the server, or lets it go on.
func (r *stormRun) turn(next *time.Timer) error {
	if !r.halted && r.Stop > 0 {
		r.halted = true
		next.Reset(r.Stop)
		return r.server.Halt()
	}
	r.halted = false
	r.resumed = time.Since(r.started)
	if r.Stop == 0 {
		return nil
	}
	return r.server.Resume()
}

// look returns a second with what is known of the server.
func (r *stormRun) look() StormSecond {
	s := StormSecond{Stopped: r.halted}
	if said := r.said.Load(); said != nil {
		s.InFlight, s.Waiting = int(said.Inner), said.Waiting
		s.Delay = r.Server.Delay(s.InFlight)
	}
	r.result.Peak = max(r.result.Peak, s.InFlight)
	return s
}

// over reports whether it is all over: the time is, or all is well.
func (r *stormRun) over() bool {
	if r.resumed == 0 {
		return false
	}
	last := r.seconds[len(r.seconds)-1]
	if last.At >= r.resumed+r.Watch {
		return true
	}
	_, well := r.well()
	return well && last.Away == 0
}

// after returns the seconds since the server went on.
func (r *stormRun) after() (after []StormSecond) {
	for _, s := range r.seconds {
		if r.resumed > 0 && s.At-time.Second >= r.resumed {
			after = append(after, s)
		}
	}
	return after
}

// well returns since when all has been well without a break.
func (r *stormRun) well() (back time.Duration, ok bool) {
	after := r.after()
	for end := len(after); end >= stormWell && isWell(after[:end]); end-- {
		back, ok = after[end-stormWell].At-time.Second-r.resumed, true
	}
	return back, ok
}

func (r *stormRun) finish() *StormResult {
	y := &r.result
	y.Seconds = r.seconds
	y.Back, y.Recovered = r.well()
	y.Unknown = len(r.after()) < stormWell
	y.Away = int(r.counts.away.Load())
	return y
}
