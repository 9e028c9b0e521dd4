package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/reconnect"
)

// Herd describes one run: which connections are lost, what meets them, and how long to watch.
type Herd struct {
	N        int           // connections, at least 1
	Client   fleet.Client  // what each of them is; the zero value is the library with its defaults
	Capacity float64       // handshakes that the server admits per second, above 0; with several, each of them
	Reject   bool          // those beyond are reset; else they wait in the kernel's backlog
	Backlog  time.Duration // how much work may wait in the kernel's backlog, which is then so many connections; default: what the kernel allows, usually 4096 connections
	Scene    Scene         // what happens to the server; default Restart
	Outage   time.Duration // from the server's death to its return; with Half there is none
	Flaps    int           // with Flap: how often it dies; default 5
	Servers  int           // with Rolling and Half; default 4
	Every    time.Duration // with Rolling: from one server's death to the next one's; default 10 s
	Known    bool          // with several servers: clients know the address of each, and dial another if one fails; else each dial meets one at random, as behind a balancer
	Watch    time.Duration // at most, from the server's return; default 90 s. With a URL from the loss, and for ever
	Trace    Trace

	// URL is a server of the user's own, to be restarted by hand after Trace.Connected. Capacity,
	// Reject and Outage mean nothing then; the run ends when each connection was lost and is back.
	URL string
}

// Trace observes a run. Each field may be nil.
type Trace struct {
	Connected func()               // all are up
	Lost      func()               // the server was killed, or one of the user's has lost the first connection
	Back      func(address string) // the server listens again; not with a URL
	Returned  func()               // one more is back. On the client's goroutine, under a lock: be quick
}

const (
	defaultWatch = 90 * time.Second
	gatherWithin = 2 * time.Minute
	settle       = 300 * time.Millisecond // between all being up and the loss
	stableAfter  = 10 * time.Second       // the default of reconnect.RunOptions
)

// Validate returns an error that names what is wrong.
func (h *Herd) Validate() error {
	switch {
	case h.N < 1:
		return fmt.Errorf("want at least 1 connection, not %d", h.N)
	case h.URL == "" && !(h.Capacity > 0 && h.Capacity <= 1e6):
		return fmt.Errorf("the capacity must be above 0 and at most 1000000 handshakes per second, not %v", h.Capacity)
	case h.Outage < 0 || h.Watch < 0 || h.Backlog < 0:
		return errors.New("a time is negative")
	case h.waiting() > mostBacklog || h.Backlog > 0 && (h.waiting() < 1 || h.Reject):
		return fmt.Errorf("a backlog of %v is %d connections: want 1 to %d, and none of them reset", h.Backlog, h.waiting(), mostBacklog)
	}
	return h.validateScene()
}

// CheckFiles calls the function [CheckFiles] for the sockets that [Run] needs. [Simulate] needs none.
func (h *Herd) CheckFiles() error {
	sockets := 1
	if h.Scene == Hang || h.Scene == Half {
		sockets = 2 // a handshake that hangs, and a dial beside it
	}
	return CheckFiles(fmt.Sprintf("a herd of %d", h.N), h.N, sockets)
}

// mostBacklog is what Linux allows by default (net.core.somaxconn).
const mostBacklog = 4096

// waiting is how many connections the backlog holds; 0: as many as the kernel lets.
func (h *Herd) waiting() int { return int(min(h.Backlog.Seconds()*h.Capacity, 1e9)) }

// Run kills the server and waits until the herd is back. When ctx ends after the loss it returns
// what was measured, with Cut set, and no error.
func Run(ctx context.Context, h Herd) (*Result, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	if err := h.CheckFiles(); err != nil {
		return nil, err
	}
	h = h.withDefaults()
	r := &run{Herd: h, counter: newCounter(h.N, h.Trace.Returned)}
	if h.URL != "" {
		return r.visit(ctx)
	}
	return r.host(ctx)
}

// run is the state of one Run.
type run struct {
	Herd
	counter   *counter
	endpoints []*endpoint
	conns     []*reconnect.Conn
}

// host is a run with servers of our own.
func (r *run) host(ctx context.Context) (*Result, error) {
	defer r.killEndpoints()
	if err := r.startEndpoints(ctx); err != nil {
		return nil, err
	}
	defer r.close()
	var urls []string
	for _, s := range r.endpoints {
		urls = append(urls, "ws://"+s.address+"/")
	}
	if err := r.gather(ctx, urls); err != nil {
		return nil, err
	}
	call(r.Trace.Connected)
	rest := settle
	if r.Scene.shortLived() {
		rest += max(0, cmp.Or(r.Client.StableAfter, stableAfter)) // so that the first loss is that of stable sessions
	}
	if err := pause(ctx, rest); err != nil {
		return nil, err
	}
	cut, err := r.play(ctx)
	if err != nil {
		return nil, err
	}
	if cut = cut || r.watch(ctx); !cut {
		for _, s := range r.endpoints { // their last counts
			if _, err := s.running.ask(context.WithoutCancel(ctx)); err != nil {
				return nil, err
			}
		}
	}
	return r.result(cut), nil
}

// visit is a run with a server of the user's.
func (r *run) visit(ctx context.Context) (*Result, error) {
	if err := r.knock(ctx); err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.gather(ctx, []string{r.URL}); err != nil {
		return nil, err
	}
	r.counter.arm()
	call(r.Trace.Connected)
	select {
	case <-r.counter.dropped:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	call(r.Trace.Lost)
	return r.result(r.watch(ctx)), nil
}

// knock opens one connection and closes it: a server that is not there is an error at
// once, which no client would make of it.
func (r *run) knock(ctx context.Context) error {
	c, err := newDialer(fleet.Client{}, []string{r.URL}, false, anywhere).Dial(ctx)
	if err != nil {
		return err
	}
	c.CloseNow()
	return nil
}

// gather connects all, and not more than connectAtOnce at a time.
func (r *run) gather(ctx context.Context, urls []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gatherWithin, errTooLong)
	defer cancel()
	dialers := make([]reconnect.Dialer, min(r.N, sources))
	for i := range dialers {
		from := source(i)
		if r.URL != "" {
			from = anywhere
		}
		dialers[i] = newDialer(r.Client, urls, r.Known, from)
	}
	for i := range r.N {
		select {
		case r.counter.connecting <- struct{}{}:
		case <-ctx.Done():
			return r.ungathered(ctx)
		}
		c, err := reconnect.New(dialers[i%len(dialers)], r.options(i))
		if err != nil {
			return err
		}
		r.conns = append(r.conns, c)
	}
	select {
	case <-r.counter.all:
		return nil
	case <-ctx.Done():
		return r.ungathered(ctx)
	}
}

var errTooLong = fmt.Errorf("not all are up after %v", gatherWithin)

func (r *run) ungathered(ctx context.Context) error {
	cause := context.Cause(ctx)
	if last := r.counter.lastError(); errors.Is(cause, errTooLong) && last != nil {
		return fmt.Errorf("connect %d clients: %w: %w", r.N, cause, last)
	}
	return fmt.Errorf("connect %d clients: %w", r.N, cause)
}

// options are those of a client. With a server of our own nothing pings, and sessions count
// as stable at once because they live for seconds, unless the scene is about that.
func (r *run) options(i int) *reconnect.Options {
	o := &reconnect.Options{
		Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard},
		Run: reconnect.RunOptions{
			Policy: r.Client.Policy, OneConnection: r.Client.OneConnection, StableAfter: r.Client.StableAfter, Trace: r.counter.trace(i),
		},
	}
	if r.URL == "" {
		o.Liveness.Limit = -1
		if !r.Scene.shortLived() {
			o.Run.StableAfter = time.Nanosecond
		}
	}
	return o
}

// watch waits until all are back, and reports whether ctx ended before.
func (r *run) watch(ctx context.Context) (cut bool) {
	var late <-chan time.Time
	if r.Watch > 0 {
		t := time.NewTimer(r.Watch)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-r.counter.done:
	case <-late:
	case <-ctx.Done():
		return true
	}
	return false
}

// result ends the count.
func (r *run) result(cut bool) *Result {
	r.counter.end()
	y := r.counter.result(time.Now())
	y.Client, y.Cut, y.Scene = r.Client.Name, cut, r.Scene
	y.Ideal = r.ideal()
	return y
}

// ideal is how long the servers need for all clients, or 0 if that is unknown, or not all
// are away at once.
func (r *run) ideal() time.Duration {
	if r.URL != "" || r.Scene == Rolling {
		return 0
	}
	s := r.Simulated()
	return s.Ideal()
}

// close closes all clients.
func (r *run) close() {
	r.counter.end()
	var closing sync.WaitGroup
	for _, c := range r.conns {
		closing.Go(func() { c.Close() })
	}
	closing.Wait()
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// pause waits for d. The error is the context's cause.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
