package lab

import (
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// Result is what came of one run. Times are counted from the server's return, and
// [fleet.Never] where they were not reached.
type Result struct {
	Client   string
	Scene    Scene
	Round    int
	N        int
	Ideal    time.Duration // N/C; 0: unknown
	Outage   time.Duration // from the loss to the server's return, as measured: until it listened again; of a server of the user's, until the first client was back
	T50, T99 time.Duration // when so many percent, rounded up, were back at once
	T100     time.Duration
	Watched  time.Duration   // until the end, from the server's return
	Cut      bool            // the user ended it
	Up       int             // at the end
	Backlog  int             // connections that the kernel lets wait for the server; 0: unknown
	Peak     int             // the most dials that the clients began in one bin
	PeakIn   int             // the most connections that arrived at the server's accept loop in one bin: 0 if it is the user's
	Dials    float64         // per client, from the loss on
	Refused  float64         // per client, and reset, closed: what cost the server little
	TimedOut float64         // per client, and answered 503: what it may have worked for in vain
	Wasted   float64         // connections per client that the server admitted and no client has become a session; 0 if it is the user's
	UpShare  float64         // of the time from the loss to the server's return
	Away     []time.Duration // for how long each client was away in all, sorted; fleet.Never, for those that were not back, is last
	Local    int             // dials for which this machine had no socket: if it is not 0 the run is no measurement
	Bins     []Bin           // from the loss on
}

// Bin is what happened in a step of [fleet.Bin].
type Bin struct {
	Dials    int // begun by clients
	Admitted int // connections that the server took
	Rejected int // connections that it reset
	Waiting  int // in the kernel's backlog when the server reported last
	Up       int // at the end
}

// Recovered reports whether all were back at once.
func (r *Result) Recovered() bool { return r.T100 != fleet.Never }

// result is the count until a time.
func (c *counter) result(until time.Time) *Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Result{
		N: c.n, Up: c.up, Local: c.local, Bins: c.bins,
		Dials: c.per(c.dials), Refused: c.per(c.refused), TimedOut: c.per(c.timedOut),
		T50: c.since(0), T99: c.since(1), T100: c.since(2),
	}
	if !c.back.IsZero() {
		r.Outage, r.Watched = c.back.Sub(c.origin), until.Sub(c.back)
	}
	if admitted := c.sum(func(r report) int { return r.Total.Admitted }); admitted > 0 {
		r.Wasted = c.per(max(0, admitted-c.sessions))
	}
	for _, said := range c.said {
		r.Backlog = max(r.Backlog, said.Backlog)
	}
	r.UpShare, r.Away = c.upShare, c.away()
	for _, b := range c.bins {
		r.Peak = max(r.Peak, b.Dials)
		r.PeakIn = max(r.PeakIn, b.Admitted+b.Rejected)
	}
	return r
}

// since is when a share was reached: 50, 99 or 100 %.
func (c *counter) since(share int) time.Duration {
	if c.reached[share].IsZero() {
		return fleet.Never
	}
	return max(0, c.reached[share].Sub(c.back))
}

// away is for how long each client was away.
func (c *counter) away() []time.Duration {
	all := make([]time.Duration, 0, c.n)
	for _, g := range c.absences {
		if g.since.IsZero() {
			all = append(all, g.away)
		} else {
			all = append(all, fleet.Never)
		}
	}
	fleet.SortTimes(all)
	return all
}

func (c *counter) per(n int) float64 { return float64(n) / float64(c.n) }
