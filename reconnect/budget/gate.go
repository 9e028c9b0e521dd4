package budget

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Gate holds the dials of a process until they may begin. Each host has a queue, served in order, that limits
// the dials per second and in progress. While the host is down, one dial at a time goes out as a probe; when it
// is back, the others follow gradually.
//
// A host is considered down after ClassRetry, such as a refused or lost connection, or ClassOverload, such as a
// timeout or a 503, and up after ClassOK, ClassSlow or ClassRefresh, such as a 404 or a 401. ClassStop says
// nothing. A RetryAfter of any class holds all dials to the host, and no response before its end means that the
// host is up. After a success the hold is 10 s at most, doubling with each RetryAfter until the next success.
//
// A verdict with Caller, as for a 429, means that the host is up, and holds no other dial. After 20 of them, less
// one for each success and each 5 s, the server may limit the address: one dial begins every 5 s.
//
// The more dials wait for a host that is down, the sooner the next probe begins: after the wait of a lone
// client if one waits, after about a second if many do, and after 3 to 4.5 s once the outage is half an hour
// old. The first wait of an outage, and one after a RetryAfter, are those of a lone client.
//
// A Gate is a [backoff.Gate]. It is safe for concurrent use and needs no closing. The zero value has the
// defaults. A Gate must not be copied after first use.
type Gate struct {
	o GateOptions

	mu    sync.Mutex           // guards what follows
	lines map[string]*hostLine // nil until the first dial
	sweep int                  // how many lines there may be before idle ones are forgotten; at least sweepAt
}

// GateOptions are the options of [NewGate]; nil means the defaults.
type GateOptions struct {
	// Rate, Burst, Concurrent and Probe apply to each host. Concurrent adapts to the server's speed. Rate is a
	// ceiling for very fast servers, or for a share of one.
	Rate       float64 // dials per second. Default 500. Negative: no limit
	Burst      int     // dials that may begin together after a pause. Default 10
	Concurrent int     // dials in progress, OnSession included. Default 16. Negative: no limit

	// Probe is the pace of probes while the host is down. If it gives up, the wait is a minute. It is called
	// with a lock held, and must not call the Gate or Conn.Status. Default: [backoff.Default].
	Probe backoff.Policy

	// Limiter also limits the dials to all hosts together. A dial waits for it after its queue, counting for
	// Concurrent.
	Limiter Limiter

	// Rand is the source for the pace of probes, used with a lock held. Default: that of backoff.Rand.
	Rand rand.Source
}

// hostLine is the line of one host, and the timer that opens it.
type hostLine struct {
	line    *line.Queue
	timer   *time.Timer
	timerAt time.Time // the time for which the timer is set; zero: it is not set

	probe *dial // the probe under way; nil: none is
	err   error // of the last dial that counts against the host; nil: the host is up, or done got no error
}

// dial is a dial that waits, or was let through.
type dial struct {
	name     string // of its connection
	admitted chan struct{}
	ticket   *line.Ticket
}

// NewGate returns a Gate, or an error that names the invalid option.
func NewGate(o *GateOptions) (*Gate, error) {
	g := new(Gate)
	if o != nil {
		g.o = *o
	}
	if math.IsNaN(g.o.Rate) {
		return nil, errors.New("budget: option Rate is not a number")
	}
	if err := notNegative("Burst", g.o.Burst); err != nil {
		return nil, err
	}
	return g, nil
}

// Acquire waits until a dial to host may begin. The caller must then call done: with ClassOK when the
// connection is usable, otherwise with the verdict on the failure. Further calls do nothing. If ctx is done
// first, Acquire returns its cause, or the error of the Limiter.
func (g *Gate) Acquire(ctx context.Context, host string) (done func(backoff.Verdict), err error) {
	leave, err := g.AcquireAs(ctx, host, "")
	if err != nil {
		return nil, err
	}
	return func(v backoff.Verdict) { leave(v, nil) }, nil
}

// AcquireAs is like Acquire, for the connection called name. done also takes the error of the dial.
// [Gate.Outlook] returns both. Package reconnect calls it, with RunOptions.Name, if its gate is a *Gate.
func (g *Gate) AcquireAs(ctx context.Context, host, name string) (done func(backoff.Verdict, error), err error) {
	x := &dial{name: name, admitted: make(chan struct{})}
	g.join(host, x)
	select {
	case <-x.admitted:
	default:
		select {
		case <-x.admitted:
		case <-ctx.Done():
			g.leave(host, x)
			return nil, context.Cause(ctx)
		}
	}
	free := func() {}
	if g.o.Limiter != nil {
		if free, err = g.limit(ctx, host, x); err != nil {
			return nil, err
		}
	}
	var once sync.Once
	return func(v backoff.Verdict, err error) {
		once.Do(func() {
			defer free() // outside of the lock, and also if Probe or Rand panics
			g.done(host, x, v, err)
		})
	}, nil
}

// limit waits at the Limiter for x, which was admitted, and returns the function that gives the slot
// back. Unless the Limiter lets x pass, limit gives the place of x back, also when
// the Limiter panics or ends the goroutine.
func (g *Gate) limit(ctx context.Context, host string, x *dial) (free func(), err error) {
	passed := false
	defer func() {
		if !passed {
			g.done(host, x, backoff.Verdict{Class: backoff.ClassStop}, nil)
		}
	}()
	free, err = pass(ctx, g.o.Limiter)
	passed = err == nil
	return free, err
}

func (g *Gate) join(host string, x *dial) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lines == nil {
		g.lines = make(map[string]*hostLine)
	}
	d := g.lines[host]
	if d == nil {
		if len(g.lines) >= max(g.sweep, sweepAt) {
			g.forget()
		}
		var r *rand.Rand
		if g.o.Rand != nil {
			r = rand.New(g.o.Rand)
		}
		d = &hostLine{line: line.New(line.Options{Rate: g.o.Rate, Burst: g.o.Burst, Concurrent: g.o.Concurrent, Probe: g.o.Probe}, r)}
		g.lines[host] = d
	}
	x.ticket = d.line.Join(time.Now())
	x.ticket.Value = x
	g.open(d)
}

// open admits the dials that may begin now, and sets the timer for the next one, or stops it if none waits for a
// time.
func (g *Gate) open(d *hostLine) {
	now := time.Now()
	t, next := d.line.Admit(now)
	for ; t != nil; t, next = d.line.Admit(now) {
		x := t.Value.(*dial)
		if t.Probe {
			d.probe = x
		}
		close(x.admitted)
	}
	switch {
	case !next.IsZero() && (d.timerAt.IsZero() || next.Before(d.timerAt)):
		g.setTimer(d, next)
	case next.IsZero() && !d.timerAt.IsZero() && d.timer.Stop():
		d.timerAt = time.Time{}
	}
}

// setTimer sets the timer, which calls open at a time.
func (g *Gate) setTimer(d *hostLine, at time.Time) {
	d.timerAt = at
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(at), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			d.timerAt = time.Time{}
			g.open(d)
		})
		return
	}
	d.timer.Reset(time.Until(at))
}

func (g *Gate) leave(host string, x *dial) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	if !d.line.Leave(x.ticket) { // it was admitted in this very moment, and will not be made
		g.end(d, x, backoff.Verdict{Class: backoff.ClassStop}, nil)
	}
	g.open(d)
}

func (g *Gate) done(host string, x *dial, v backoff.Verdict, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	defer g.open(d) // also if Probe or Rand panics, because others wait
	g.end(d, x, v, err)
}

// end ends a dial that was admitted.
func (g *Gate) end(d *hostLine, x *dial, v backoff.Verdict, err error) {
	if d.probe == x {
		d.probe = nil
	}
	if !v.Caller && (v.Class == backoff.ClassRetry || v.Class == backoff.ClassOverload) {
		d.err = err
	}
	if down := d.line.Done(x.ticket, v, time.Now()); !down {
		d.err = nil
	}
}

// sweepAt is how many hosts there may be before idle ones are forgotten.
const sweepAt = 64

// forget forgets the hosts that are idle. It is called only when their number has doubled
// since the last time, so that a new host costs O(1).
func (g *Gate) forget() {
	now := time.Now()
	maps.DeleteFunc(g.lines, func(_ string, d *hostLine) bool { return d.line.Idle(now) })
	g.sweep = max(sweepAt, 2*len(g.lines))
}

// GateStatus is a snapshot of a host's queue.
type GateStatus struct {
	Waiting int           // waiting dials
	Dialing int           // dials that were admitted and are not done
	Limit   int           // maximum Dialing at present
	Longest time.Duration // how long the first of the waiting dials has waited
	Granted uint64        // dials admitted so far
	Down    bool          // the host is down
	Held    time.Time     // if in the future: no dial before this, because of what the server said
	Probe   time.Time     // while Down: no probe before this, unless a dial joins
}

// Status returns a snapshot of the queue of host, or the zero value if host is unknown.
func (g *Gate) Status(host string) GateStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	if d == nil {
		return GateStatus{}
	}
	return GateStatus(d.line.Status(time.Now()))
}

// Hosts returns the hosts that have a queue, sorted. An idle queue is removed some time later.
func (g *Gate) Hosts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.lines))
}
