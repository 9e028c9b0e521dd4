package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Gate is where all connections of a process wait for leave to dial, each host
// having a [Line] of its own. It bounds rate and concurrency of dials, holds
// everyone when the server told one of them to wait, lets one probe while the host is
// down, and the others in gradually when it is back. Who waits is served in order.
//
// It is a reconnect.Gate and a dialer.Gate, is safe for concurrent use, starts no
// goroutine and needs no closing. To wait costs one channel.
type Gate struct {
	o GateOptions

	mu    sync.Mutex // guards what follows
	lines map[string]*door
	sweep int // at so many lines the idle ones are forgotten
}

// GateOptions are the options of [NewGate]; nil has the defaults.
type GateOptions struct {
	LineOptions // for each host

	// Limiter is asked as well, after the line: one that a fleet shares, for
	// instance. Default: none.
	Limiter Limiter

	// Rand is where the pace of probes is drawn from, under a lock. Default:
	// that of backoff.Rand.
	Rand rand.Source
}

// door is the line of one host and the timer that looks after it.
type door struct {
	line  *Line
	timer *time.Timer
	rings time.Time // when the timer does; zero: it is not set
}

// NewGate returns a Gate. The error names the option that is wrong.
func NewGate(o *GateOptions) (*Gate, error) {
	g := &Gate{lines: make(map[string]*door), sweep: sweepAt}
	if o != nil {
		g.o = *o
	}
	if g.o.Burst < 0 {
		return nil, fmt.Errorf("budget: option Burst is negative: %d", g.o.Burst)
	}
	if math.IsNaN(g.o.Rate) {
		return nil, errors.New("budget: option Rate is not a number")
	}
	return g, nil
}

// Acquire waits until a dial to host may begin. Done must be called exactly once,
// with ClassOK when the connection is of use, or with the verdict on why it did not
// come to that. When ctx ends first, its cause is returned, or what the Limiter
// makes of it.
func (g *Gate) Acquire(ctx context.Context, host string) (done func(backoff.Verdict), err error) {
	t, admitted := g.join(host)
	select {
	case <-admitted:
	default:
		select {
		case <-admitted:
		case <-ctx.Done():
			g.leave(host, t)
			return nil, context.Cause(ctx)
		}
	}
	if err := g.limit(ctx, host, t); err != nil {
		return nil, err
	}
	var once sync.Once
	return func(v backoff.Verdict) { once.Do(func() { g.done(host, t, v) }) }, nil
}

// limit waits at the Limiter, for t, which was admitted. Unless the Limiter lets it
// pass, the place of t is given back, also when Wait panics or ends the goroutine.
func (g *Gate) limit(ctx context.Context, host string, t *Ticket) (err error) {
	if g.o.Limiter == nil {
		return nil
	}
	passed := false
	defer func() {
		if !passed {
			g.done(host, t, backoff.Verdict{Class: backoff.ClassStop})
		}
	}()
	err = g.o.Limiter.Wait(ctx)
	passed = err == nil
	return err
}

func (g *Gate) join(host string) (*Ticket, <-chan struct{}) {
	admitted := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	if d == nil {
		g.forget()
		var r *rand.Rand
		if g.o.Rand != nil {
			r = rand.New(g.o.Rand)
		}
		d = &door{line: NewLine(g.o.LineOptions, r)}
		g.lines[host] = d
	}
	t := d.line.Join(time.Now())
	t.Value = admitted
	g.open(d)
	return t, admitted
}

// open lets in who may, and sets the timer for the next one.
func (g *Gate) open(d *door) {
	now := time.Now()
	for {
		t, next := d.line.Admit(now)
		if t != nil {
			close(t.Value.(chan struct{}))
			continue
		}
		if !next.IsZero() && (d.rings.IsZero() || next.Before(d.rings)) {
			g.ring(d, next)
		}
		return
	}
}

// ring has open called at a time. The timer holds nothing that needs an end: it
// finds nobody waiting, and is not set again.
func (g *Gate) ring(d *door, at time.Time) {
	d.rings = at
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(at), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			d.rings = time.Time{}
			g.open(d)
		})
		return
	}
	d.timer.Reset(time.Until(at))
}

func (g *Gate) leave(host string, t *Ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	if !d.line.Leave(t) { // admitted in this very moment, and not made use of
		d.line.Done(t, backoff.Verdict{Class: backoff.ClassStop}, time.Now())
	}
	g.settle(d)
}

func (g *Gate) done(host string, t *Ticket, v backoff.Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	defer g.settle(d) // also if Probe or Rand panics: others wait
	d.line.Done(t, v, time.Now())
}

// settle opens d, and stops a timer that nobody waits for.
func (g *Gate) settle(d *door) {
	g.open(d)
	if d.line.first == nil && !d.rings.IsZero() && d.timer.Stop() {
		d.rings = time.Time{}
	}
}

// sweepAt is how many hosts are remembered before idle ones are forgotten.
const sweepAt = 64

// forget forgets hosts of which nothing needs to be known, at most once each time
// that their number has doubled, so that a new host costs O(1).
func (g *Gate) forget() {
	if len(g.lines) < g.sweep {
		return
	}
	now := time.Now()
	for host, d := range g.lines {
		if d.line.idle(now) {
			delete(g.lines, host)
		}
	}
	g.sweep = max(sweepAt, 2*len(g.lines))
}

// Status returns a snapshot of the line of host; the zero value if none has been.
func (g *Gate) Status(host string) LineStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	if d == nil {
		return LineStatus{}
	}
	return d.line.Status(time.Now())
}
