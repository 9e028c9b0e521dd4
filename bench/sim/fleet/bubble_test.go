package fleet_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/redial-go/redial/bench/sim/fleet"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// bubble is the world of a fleet.Herd with real reconnect.Conns in it, to be
// compared with the model: its server is a goroutine that takes one client after
// the other out of a queue and completes a handshake in 1/C s.
type bubble struct {
	fleet.Herd
	work  time.Duration
	calls chan struct{} // capacity 1: somebody has joined

	mu     sync.Mutex // guards what follows; never held across a wait
	lost   time.Time  // when the server went
	back   time.Time  // when it is back for good
	queue  []*place
	conns  []*conntest.Fake
	dials  map[time.Duration]int // by Bin, since the loss
	up     []time.Duration       // since the server's return
	upTime time.Duration         // of all together, until seen
	seen   time.Time
}

// place is one in the server's queue.
type place struct {
	over   chan struct{} // closed when it is served, or reset
	served bool
}

// outcome is what is compared.
type outcome struct{ t50, t99, peak, dials, upShare float64 }

// add adds a share of p.
func (o *outcome) add(p outcome, share float64) {
	o.t50 += share * p.t50
	o.t99 += share * p.t99
	o.peak += share * p.peak
	o.dials += share * p.dials
	o.upShare += share * p.upShare
}

// measure runs real Conns until they are back.
func (b *bubble) measure() (out outcome) {
	b.work = time.Duration(float64(time.Second) / b.Server.Capacity)
	b.calls = make(chan struct{}, 1)
	b.back = time.Now()
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { b.serve(ctx) })
	gates := b.gates()
	clients := make([]*reconnect.Conn, b.N)
	for i := range clients {
		o := reconnect.RunOptions{
			Policy: b.Client.Policy, OneConnection: b.Client.OneConnection, StableAfter: b.Client.StableAfter,
			Rand: rand.NewPCG(uint64(i), b.Seed),
		}
		if b.Processes > 0 {
			o.Gate, o.Host = gates[i%b.Processes], "the server"
		}
		c, err := reconnect.New(reconnect.DialFunc(b.dial), &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}, Run: o})
		if err != nil {
			panic(err)
		}
		clients[i] = c
	}
	time.Sleep(time.Hour) // all are up, and stable
	share := b.play()
	time.Sleep(b.Watch - time.Since(b.lost))
	out = b.outcome()
	out.upShare = share
	for _, c := range clients {
		c.Close()
	}
	stop()
	serving.Wait()
	return out
}

// gates returns one for each process.
func (b *bubble) gates() []*budget.Gate {
	gates := make([]*budget.Gate, b.Processes)
	for i := range gates {
		g, err := budget.NewGate(&budget.GateOptions{LineOptions: b.Gate, Rand: rand.NewPCG(b.Seed, uint64(i))})
		if err != nil {
			panic(err)
		}
		gates[i] = g
	}
	return gates
}

// spells are those of the outage.
func (b *bubble) spells() []fleet.Spell {
	if b.Outage.Spells != nil {
		return b.Outage.Spells
	}
	return []fleet.Spell{{Down: b.Outage.Down, Length: b.Outage.Length}}
}

// play lets the server go and come back, and returns when it is back for good: with the
// share of the connections that were up until then.
func (b *bubble) play() (upShare float64) {
	b.mu.Lock()
	b.lost = time.Now()
	b.seen, b.back = b.lost, b.lost.Add(b.Return())
	b.mu.Unlock()
	before := fleet.Up
	for _, s := range b.spells() {
		if s.Down != fleet.Up && before == fleet.Up {
			b.kill()
		}
		before = s.Down
		time.Sleep(s.Length)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	return b.upTime.Seconds() / max(time.Since(b.lost).Seconds(), 1) / float64(b.N)
}

// kill is the loss of all connections. Clients in the queue are reset.
func (b *bubble) kill() {
	b.mu.Lock()
	lost, waiting := b.conns, b.queue
	b.look()
	b.conns, b.queue, b.up = nil, nil, nil
	if b.dials == nil {
		b.dials = map[time.Duration]int{}
	}
	b.mu.Unlock()
	for _, p := range waiting {
		close(p.over)
	}
	for _, c := range lost {
		c.Fail(io.EOF)
	}
}

// look counts the time for which connections have been up.
func (b *bubble) look() {
	b.upTime += time.Since(b.seen) * time.Duration(len(b.conns))
	b.seen = time.Now()
}

// serve completes handshakes, also those of clients that have left.
func (b *bubble) serve(ctx context.Context) {
	for {
		b.mu.Lock()
		var first *place
		if len(b.queue) > 0 {
			first = b.queue[0]
		}
		b.mu.Unlock()
		if first == nil {
			select {
			case <-b.calls:
				continue
			case <-ctx.Done():
				return
			}
		}
		time.Sleep(b.work)
		b.mu.Lock()
		if len(b.queue) > 0 && b.queue[0] == first { // it was not reset meanwhile
			first.served, b.queue = true, b.queue[1:]
			close(first.over)
		}
		b.mu.Unlock()
	}
}

// dial is a dialer that keeps the limits of the try.
func (b *bubble) dial(ctx context.Context) (conn.Conn, error) {
	b.mu.Lock()
	if b.dials != nil {
		b.dials[time.Since(b.lost)/fleet.Bin]++
	}
	b.mu.Unlock()
	try := backoff.AttemptFrom(ctx)
	if try.Connect == 0 {
		try.Connect = backoff.DefaultConnect
	}
	if try.Handshake == 0 {
		try.Handshake = backoff.DefaultHandshake
	}
	mine, err := b.connect(ctx, try.Connect)
	if err != nil {
		return nil, err
	}
	if try.Connected != nil {
		try.Connected() // and the supervisor has the limit
		try.Handshake = 24 * time.Hour
	}
	late := time.NewTimer(try.Handshake)
	defer late.Stop()
	select {
	case <-mine.over:
		if !mine.served {
			return nil, syscall.ECONNRESET
		}
	case <-late.C:
		return nil, fmt.Errorf("handshake: %w", context.DeadlineExceeded)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f := conntest.NewFake(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	b.conns = append(b.conns, f)
	b.up = append(b.up, time.Since(b.back))
	return f.Conn(), nil
}

// connect sends SYNs as Linux does until there is room.
func (b *bubble) connect(ctx context.Context, limit time.Duration) (mine *place, err error) {
	pause := time.Second
	for {
		mine, err := b.knock()
		if mine != nil || err != nil {
			return mine, err
		}
		select {
		case <-time.After(min(pause, limit)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if limit -= pause; limit <= 0 {
			return nil, fmt.Errorf("connect: %w", context.DeadlineExceeded)
		}
		pause *= 2
	}
}

// meets is what a dial meets now.
func (b *bubble) meets() fleet.Down {
	at := time.Since(b.lost)
	for _, s := range b.spells() {
		if at < s.Length {
			return s.Down
		}
		at -= s.Length
	}
	return fleet.Up
}

// knock is one SYN: no place and no error means that it was dropped.
func (b *bubble) knock() (*place, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dials != nil {
		waiting := max(len(b.queue)-1, 0) // beside the one that is being served
		full := waiting >= b.Server.Backlog && b.Server.Queue != fleet.Unbounded
		switch down := b.meets(); {
		case down == fleet.Swallowed:
			return &place{over: make(chan struct{})}, nil
		case down == fleet.Unavailable, down == fleet.Up && full && b.Server.Queue == fleet.Busy:
			return nil, unavailable{b.Server.RetryAfter}
		case down == fleet.Refused, full && b.Server.Queue == fleet.Reject:
			return nil, syscall.ECONNREFUSED
		case full:
			return nil, nil
		}
	}
	mine := &place{over: make(chan struct{})}
	b.queue = append(b.queue, mine)
	select {
	case b.calls <- struct{}{}:
	default:
	}
	return mine, nil
}

// unavailable is a 503.
type unavailable struct{ after time.Duration }

func (unavailable) Error() string                       { return "503" }
func (unavailable) StatusCode() int                     { return 503 }
func (u unavailable) RetryAfter() (time.Duration, bool) { return u.after, u.after > 0 }

func (b *bubble) outcome() outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := outcome{t50: -1, t99: -1} // they are in order of time
	if n := (b.N + 1) / 2; len(b.up) >= n {
		o.t50 = b.up[n-1].Seconds()
	}
	if n := (99*b.N + 99) / 100; len(b.up) >= n {
		o.t99 = b.up[n-1].Seconds()
	}
	for _, n := range b.dials {
		o.peak = max(o.peak, float64(n))
		o.dials += float64(n) / float64(b.N)
	}
	return o
}
