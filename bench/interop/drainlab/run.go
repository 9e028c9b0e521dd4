package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/child"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Drain is one run. Zero fields have the defaults.
type Drain struct {
	Way     string         // one of ways
	Clients int            // default 2,000
	Window  time.Duration  // the time that the first server has; default 10 s
	Lead    time.Duration  // for how long it is not ready before that; default 1 s
	Rate    float64        // numbered messages per second, to each client and from it; default 2
	Policy  backoff.Policy `json:"-"` // default: the library's
}

func (d Drain) withDefaults() (Drain, error) {
	d.Clients, d.Window = cmp.Or(d.Clients, 2000), cmp.Or(d.Window, 10*time.Second)
	d.Lead, d.Rate = cmp.Or(d.Lead, time.Second), cmp.Or(d.Rate, 2)
	switch {
	case d.Clients < 0 || d.Clients > 50_000:
		return d, fmt.Errorf("want 1 to 50000 clients, not %d", d.Clients)
	case d.Window < time.Second || d.Window > time.Hour:
		return d, fmt.Errorf("want a window of %v to %v, not %v", time.Second, time.Hour, d.Window)
	case d.Lead < 0 || d.Lead > time.Hour:
		return d, fmt.Errorf("want a lead of 0s to %v, not %v", time.Hour, d.Lead)
	case !(d.Rate > 0) || d.Rate > 1000:
		return d, fmt.Errorf("want above 0 and at most 1000 messages per second for each client, not %v", d.Rate)
	}
	_, err := findWay(d.Way)
	return d, err
}

// Validate returns what is wrong with d, or too much for this process.
func (d Drain) Validate() error {
	d, err := d.withDefaults()
	if err != nil {
		return err
	}
	return lab.CheckFiles(fmt.Sprintf("a drain of %d clients", d.Clients), d.Clients, 2) // haproxy has two sockets for each
}

// Result is what came of a run. Its times are in seconds.
type Result struct {
	Way     string
	Dials   []int          // in each 100 ms, from SIGTERM on
	Peak    int            // the most of these
	Failed  map[string]int // dials that have failed, by the reason
	Cut     int            // clients that were without a session at all
	Away    float64        // the longest for which one was
	Mean    float64        // the mean of that over all clients
	Back    float64        // from SIGTERM until the last client was with the second server
	Drained float64        // from SIGTERM until the first server had ended
	Sent    uint64         // messages of the clients
	Lost    uint64         // messages, of both directions, that never came
	Twice   uint64         // messages, of both directions, that came again
}

// Vain returns how many dials have failed.
func (r *Result) Vain() (n int) {
	for _, each := range r.Failed {
		n += each
	}
	return n
}

// Run measures one drain. It returns an error if a client was not connected in the end.
func Run(ctx context.Context, d Drain) (*Result, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("measure a drain: %w", err)
	}
	d, _ = d.withDefaults()
	r, err := d.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure a drain by %q: %w", d.Way, err)
	}
	return r, nil
}

func (d Drain) run(ctx context.Context) (*Result, error) {
	s := &setup{Drain: d, Epoch: time.Now()}
	first, err := start(ctx, s)
	if err != nil {
		return nil, err
	}
	defer first.Kill()
	next := *s
	next.Way, next.Lead, next.Asleep = "cut", 0, true
	second, err := start(ctx, &next)
	if err != nil {
		return nil, err
	}
	defer second.Kill()
	proxy, err := startHAProxy(first.address, second.address, d.Clients)
	if err != nil {
		return nil, err
	}
	defer proxy.end()
	if err := proxy.await(ctx, oneServer); err != nil {
		return nil, err
	}
	h, err := newHerd(s, proxy.address, d.Policy, time.Duration(d.Clients)*time.Second/500)
	if err != nil {
		return nil, err
	}
	defer h.end()
	if err := h.awaitReady(ctx); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := second.wake(); err != nil {
		return nil, err
	}
	if err := proxy.await(ctx, bothServers); err != nil {
		return nil, err
	}
	r := &Result{Way: d.Way}
	reports, err := h.replace(ctx, first, second, r)
	if err != nil {
		return nil, err
	}
	h.count(r, reports)
	return r, nil
}

// replace lets the first server drain while the clients talk, and then ends all.
func (h *herd) replace(ctx context.Context, first, second *process, r *Result) (reports []*report, err error) {
	talking, quiet := context.WithCancel(ctx)
	said := make(chan struct{})
	go func() { // <-said waits for it
		defer close(said)
		h.talk(talking)
	}()
	defer func() { quiet(); <-said }()
	if !sleep(ctx, time.Second) {
		return nil, context.Cause(ctx)
	}
	h.begin()
	one, err := first.drain(ctx)
	if err != nil {
		return nil, err
	}
	r.Drained = time.Since(h.begun).Seconds()
	if err := h.awaitReady(ctx); err != nil {
		return nil, fmt.Errorf("come back: %w", err)
	}
	if !sleep(ctx, 2*time.Second) { // for what was on its way, and rotations to be complete
		return nil, context.Cause(ctx)
	}
	quiet()
	<-said
	if err := h.settle(ctx, time.Now()); err != nil {
		return nil, err
	}
	h.mu.Lock()
	r.Failed, r.Cut, r.Away, r.Back = maps.Clone(h.failed), h.cut, h.away.Seconds(), h.back.Seconds()
	r.Mean = h.sum.Seconds() / float64(len(h.clients))
	for _, at := range h.dials {
		for len(r.Dials) <= int(at/fleet.Bin) {
			r.Dials = append(r.Dials, 0)
		}
		r.Dials[at/fleet.Bin]++
	}
	h.mu.Unlock()
	r.Peak = slices.Max(append(r.Dials, 0))
	h.leave(ctx)
	two, err := second.drain(ctx)
	return []*report{one, two}, err
}

// count compares what was sent with what was received.
func (h *herd) count(r *Result, reports []*report) {
	for i, c := range h.clients {
		r.Sent += c.next - 1
		got, twice := union(reports[0].Received[i], reports[1].Received[i])
		r.Lost += c.next - 1 - got + c.missed.Load()
		r.Twice += twice + c.twice.Load()
	}
}

// union returns how many different numbers are in spans, and how many are there again.
func union(spans ...[]span) (different, again uint64) {
	all := slices.Concat(spans...)
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a[0], b[0]) })
	end := uint64(0) // the last number seen
	for _, s := range all {
		fresh := s[1] - min(max(end, s[0]-1), s[1])
		different, again = different+fresh, again+s[1]-s[0]+1-fresh
		end = max(end, s[1])
	}
	return different, again
}

// process is a server process, as its parent sees it.
type process struct {
	*child.Process
	address   string        // read when listening is closed
	listening chan struct{} // closed when it does
	report    *report       // what it has said in the end; read when it is gone
}

// start starts a server, and waits until it listens. The caller must call Kill.
func start(ctx context.Context, s *setup) (*process, error) {
	p := &process{listening: make(chan struct{})}
	var err error
	if p.Process, err = child.Start(p.hear, serverArgument, s); err != nil {
		return nil, err
	}
	select {
	case <-p.listening:
		return p, nil
	case <-p.Gone():
		err = fmt.Errorf("a server has ended: %s", p.LastWords())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.Kill()
	return nil, err
}

func (p *process) hear(s said) {
	if s.Address != "" {
		p.address = s.Address
		close(p.listening)
	}
	if s.Report != nil {
		p.report = s.Report
	}
}

// wake makes a server ready that was started asleep.
func (p *process) wake() error {
	_, err := io.WriteString(p.In, "\n")
	return err
}

// drain sends SIGTERM, and waits until the server has ended.
func (p *process) drain(ctx context.Context) (*report, error) {
	if err := p.Terminate(); err != nil {
		return nil, err
	}
	select {
	case <-p.Gone():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case p.report == nil:
		return nil, fmt.Errorf("a server has ended without a report: %s", p.LastWords())
	case p.report.Error != "":
		return nil, errors.New(p.report.Error)
	}
	return p.report, nil
}
