package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
)

// Storm is one run of package storm on real sockets, with its server. Each request
// has a connection of its own.
type Storm struct {
	Client  storm.Client
	Server  storm.Server
	Clients int           // at least 1
	Think   time.Duration // mean of a client's pause after a success, which is Exp
	Timeout time.Duration // of a request
	Before  time.Duration // until the server is stopped
	Stop    time.Duration // for how long
	Watch   time.Duration // for how long it is watched afterwards; a run that is well for stormWell, with no client away, ends earlier

	Each func(StormSecond) // is called with each second; may be nil
}

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
)

// Validate says what is wrong. A limit on open files that is too low is a
// *[FilesError].
func (s *Storm) Validate() error {
	switch {
	case s.Clients < 1:
		return fmt.Errorf("want at least 1 client, not %d", s.Clients)
	case s.Think <= 0 || s.Timeout <= 0:
		return errors.New("the pause and the timeout must be above 0")
	case s.Before < 0 || s.Stop < 0 || s.Watch <= 0:
		return errors.New("no time may be negative, and the watch must be above 0")
	}
	if _, err := s.Client.Policy(); err != nil {
		return err
	}
	if err := s.Server.Validate(); err != nil {
		return err
	}
	limit, err := RaiseFiles()
	if err != nil {
		return err
	}
	// The server keeps the connections of clients that have left. Five for each client are
	// enough to begin with, and a storm that does not end fills any limit.
	return CheckFiles(fmt.Sprintf("a storm of %d clients", s.Clients), s.Clients, 5, limit)
}

// RunStorm runs s. When ctx ends it returns what was measured, with Cut set, and no
// error.
func RunStorm(ctx context.Context, s Storm) (*StormResult, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	r := &stormRun{Storm: s}
	server, err := start(setup{Address: "127.0.0.1:0", Storm: &s.Server}, r.hear)
	if err != nil {
		return nil, err
	}
	defer server.kill()
	at, err := server.ask(ctx)
	if err != nil {
		return nil, err
	}
	r.server = server
	clients, err := newStormClients(&r.Storm, "http://"+at.Address+"/api", &r.counts)
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i := range s.Clients {
		running.Go(func() { clients[i].live(inner) })
	}
	return r.run(ctx)
}

// stormRun is the state of one run. All but what is atomic belongs to the goroutine of
// RunStorm.
type stormRun struct {
	Storm
	server  *process
	counts  stormCounts
	said    atomic.Pointer[report] // the last one of the server
	started time.Time
	resumed time.Duration // when the server went on; 0: not yet
	halted  bool
	result  StormResult
}

// stormCounts are written by the clients.
type stormCounts struct{ ok, timedOut, failed, away atomic.Int64 }

func (r *stormRun) hear(p report) { r.said.Store(&p) }

// run takes note each second until it is over.
func (r *stormRun) run(ctx context.Context) (*StormResult, error) {
	r.started = time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	change := time.NewTimer(r.Before)
	defer change.Stop()
	var before StormSecond // totals
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
			before = r.second(now, before)
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

// second notes one, and returns the totals.
func (r *stormRun) second(now time.Time, before StormSecond) StormSecond {
	total := StormSecond{
		OK: int(r.counts.ok.Load()), TimedOut: int(r.counts.timedOut.Load()), Failed: int(r.counts.failed.Load()),
	}
	s := StormSecond{
		At: now.Sub(r.started).Round(100 * time.Millisecond), Stopped: r.halted, Away: int(r.counts.away.Load()),
		OK: total.OK - before.OK, TimedOut: total.TimedOut - before.TimedOut, Failed: total.Failed - before.Failed,
	}
	if said := r.said.Load(); said != nil {
		s.InFlight, s.Waiting = int(said.Inner), said.Waiting
		s.Delay = r.Server.Delay(s.InFlight)
	}
	r.result.Peak = max(r.result.Peak, s.InFlight)
	r.result.Seconds = append(r.result.Seconds, s)
	if r.Each != nil {
		r.Each(s)
	}
	return total
}

// over reports whether it is all over: the time is, or all is well.
func (r *stormRun) over() bool {
	if r.resumed == 0 {
		return false
	}
	last := r.result.Seconds[len(r.result.Seconds)-1]
	if last.At >= r.resumed+r.Watch {
		return true
	}
	_, well := r.well()
	return well && last.Away == 0
}

// after returns the seconds since the server went on.
func (r *stormRun) after() (after []StormSecond) {
	for _, s := range r.result.Seconds {
		if r.resumed > 0 && s.At-time.Second >= r.resumed {
			after = append(after, s)
		}
	}
	return after
}

// well returns since when all has been well without a break.
func (r *stormRun) well() (back time.Duration, ok bool) {
	after := r.after()
	for end := len(after); end >= stormWell; end-- {
		good, ended := 0, 0
		for _, s := range after[end-stormWell : end] {
			good, ended = good+s.OK, ended+s.OK+s.TimedOut+s.Failed
		}
		if good == 0 || float64(good) < stormShare*float64(ended) {
			break
		}
		back, ok = after[end-stormWell].At-time.Second-r.resumed, true
	}
	return back, ok
}

func (r *stormRun) finish() *StormResult {
	y := &r.result
	y.Back, y.Recovered = r.well()
	y.Unknown = len(r.after()) < stormWell
	y.Away = int(r.counts.away.Load())
	return y
}
