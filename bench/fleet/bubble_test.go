package fleet_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/fleet"
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
	lost  time.Time // when the server went
	back  time.Time
	calls chan struct{} // capacity 1: somebody has joined

	mu    sync.Mutex // guards what follows; never held across a wait
	queue []chan struct{}
	conns []*conntest.Fake
	dials map[time.Duration]int // by Bin, since the loss
	up    []time.Duration       // since the server's return
}

// outcome is what is compared.
type outcome struct{ t50, t99, peak, dials float64 }

// add adds a share of p.
func (o *outcome) add(p outcome, share float64) {
	o.t50 += share * p.t50
	o.t99 += share * p.t99
	o.peak += share * p.peak
	o.dials += share * p.dials
}

// measure lets real Conns come back.
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
	b.kill()
	time.Sleep(b.Watch)
	out = b.outcome()
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

// kill is the loss of all connections.
func (b *bubble) kill() {
	b.mu.Lock()
	lost := b.conns
	b.conns, b.up = nil, nil
	b.dials = map[time.Duration]int{}
	b.lost = time.Now()
	b.back = b.lost.Add(b.Outage.Length)
	b.mu.Unlock()
	for _, c := range lost {
		c.Fail(io.EOF)
	}
}

// serve completes handshakes, also of those who have left.
func (b *bubble) serve(ctx context.Context) {
	for {
		b.mu.Lock()
		var first chan struct{}
		if len(b.queue) > 0 {
			first, b.queue = b.queue[0], b.queue[1:]
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
		close(first)
	}
}

// dial is a dialer that keeps the limits of the try.
func (b *bubble) dial(ctx context.Context) (conn.Conn, error) {
	b.mu.Lock()
	if b.dials != nil {
		b.dials[time.Since(b.lost)/fleet.Bin]++
	}
	b.mu.Unlock()
	try := backoff.TryFrom(ctx)
	if try.Connect == 0 {
		try.Connect = backoff.DefaultConnect
	}
	if try.Handshake == 0 {
		try.Handshake = backoff.DefaultHandshake
	}
	served, err := b.connect(ctx, try.Connect)
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
	case <-served:
	case <-late.C:
		return nil, fmt.Errorf("handshake: %w", context.DeadlineExceeded)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f := conntest.NewFake(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, f)
	b.up = append(b.up, time.Since(b.back))
	return f.Conn(), nil
}

// connect sends SYNs as Linux does until there is room.
func (b *bubble) connect(ctx context.Context, limit time.Duration) (served chan struct{}, err error) {
	pause := time.Second
	for {
		served, err := b.knock()
		if served != nil || err != nil {
			return served, err
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

// knock is one SYN: no channel and no error means that it was dropped.
func (b *bubble) knock() (chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch full := len(b.queue) >= b.Server.Backlog && b.Server.Queue != fleet.Unbounded && b.dials != nil; {
	case time.Now().Before(b.back) && b.Outage.Down == fleet.Swallowed:
		return make(chan struct{}), nil
	case time.Now().Before(b.back) && b.Outage.Down == fleet.Unavailable:
		return nil, unavailable{b.Server.RetryAfter}
	case time.Now().Before(b.back):
		return nil, syscall.ECONNREFUSED
	case full && b.Server.Queue == fleet.Reject:
		return nil, syscall.ECONNREFUSED
	case full && b.Server.Queue == fleet.Busy:
		return nil, unavailable{b.Server.RetryAfter}
	case full:
		return nil, nil
	}
	served := make(chan struct{})
	b.queue = append(b.queue, served)
	select {
	case b.calls <- struct{}{}:
	default:
	}
	return served, nil
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

// Ten thousand real Conns that dial once at a time, and the model, within 10 %.
func TestRealConnsComeBackAsTheModelSays(t *testing.T) {
	n := manyOr(1_000)
	second := time.Second
	paced := client(fleet.Paced(&backoff.Paced{}))
	for name, h := range map[string]fleet.Herd{
		"paced, drop":           {Client: paced, Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"restart, drop":         {Client: paced, Server: fleet.Server{Queue: fleet.Drop}},
		"paced, reject":         {Client: paced, Server: fleet.Server{Queue: fleet.Reject, Backlog: n / 20}, Outage: fleet.Outage{Length: 5 * second}},
		"full jitter, drop":     {Client: client(fullJitter()), Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"paced, 503":            {Client: paced, Server: fleet.Server{Queue: fleet.Busy, Backlog: n / 20, RetryAfter: 3 * second}},
		"impatient, unbounded":  {Client: client(impatient()), Outage: fleet.Outage{Length: second}},
		"impatient, short drop": {Client: client(impatient()), Server: fleet.Server{Queue: fleet.Drop, Backlog: n / 10}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, h, n)
		})
	}
}

// manyOr is how many real Conns there are: 10,000, or few where that would take long.
func manyOr(few int) int {
	if raceEnabled || testing.Short() {
		return few
	}
	return 10_000
}

// compare lets n real Conns and the model come back to a server that needs 20 s for them.
func compare(t *testing.T, h fleet.Herd, n int) {
	t.Helper()
	h.N, h.Watch, h.Server.Capacity, h.Seed = n, h.Outage.Length+3*time.Minute, float64(n)/20, 7
	if h.Server.Backlog == 0 {
		h.Server.Backlog = 4096 * n / 10_000
	}
	if h.Server.Queue == fleet.Busy {
		h.Server.Answers = 1e9 // at once, as in the bubble
	}
	model, err := fleet.Average(t.Context(), h, 5, 2)
	require.NoError(t, err)
	var real outcome
	synctest.Test(t, func(*testing.T) { real = (&bubble{Herd: h}).measure() })
	t.Logf("t50 %.2f %.2f, t99 %.2f %.2f, peak %.0f %.0f, dials %.3f %.3f", real.t50, model.T50.Seconds(), real.t99, model.T99.Seconds(), real.peak, model.Peak, real.dials, model.Dials)
	tolerance := 0.1
	if n < 10_000 {
		tolerance = 0.2 // fewer clients, more noise
	}
	require.InEpsilon(t, model.T50.Seconds(), real.t50, tolerance, "t50")
	require.InEpsilon(t, model.T99.Seconds(), real.t99, tolerance, "t99")
	require.InEpsilon(t, model.Peak, real.peak, tolerance, "peak")
	require.InEpsilon(t, model.Dials, real.dials, tolerance, "dials")
}

// The same with gates: 2000 real Conns in 20 processes, each with a real budget.Gate.
func TestRealConnsWithRealGatesComeBackAsTheModelSays(t *testing.T) {
	second := time.Second
	rounds, tolerance := 8, 0.1
	if raceEnabled || testing.Short() {
		rounds, tolerance = 1, 0.2
	}
	paced := client(fleet.Paced(&backoff.Paced{}))
	for name, h := range map[string]fleet.Herd{
		"paced":      {Outage: fleet.Outage{Length: 5 * second}},
		"strong":     {Server: fleet.Server{Capacity: 5000}, Outage: fleet.Outage{Length: 5 * second}},
		"reject":     {Server: fleet.Server{Queue: fleet.Reject, Backlog: 100}, Outage: fleet.Outage{Length: 5 * second}},
		"503, told":  {Server: fleet.Server{Queue: fleet.Busy, Backlog: 100, RetryAfter: 3 * second}},
		"slow gates": {Gate: budget.LineOptions{Rate: 4, Burst: 2, Concurrent: 2}, Outage: fleet.Outage{Length: 5 * second}},
		"impatient":  {Client: client(impatient()), Server: fleet.Server{Queue: fleet.Drop, Backlog: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			h.N, h.Processes, h.Watch, h.Server.Answers, h.Seed = 2000, 20, 3*time.Minute, 1e9, 7
			if h.Client.Policy == nil {
				h.Client = paced
			}
			if h.Server.Capacity == 0 {
				h.Server.Capacity = 97 // not 100: a SYN that is sent again after 1 s would meet a completion, and which is first is chance
			}
			model, err := fleet.Average(t.Context(), h, 30, 2)
			require.NoError(t, err)
			var real outcome
			for range rounds {
				var one outcome
				synctest.Test(t, func(*testing.T) { one = (&bubble{Herd: h}).measure() })
				real.add(one, 1/float64(rounds))
				h.Seed++
			}
			t.Logf("t50 %.2f %.2f, t99 %.2f %.2f, peak %.0f %.0f, dials %.3f %.3f", real.t50, model.T50.Seconds(), real.t99, model.T99.Seconds(), real.peak, model.Peak, real.dials, model.Dials)
			require.InEpsilon(t, model.T50.Seconds(), real.t50, tolerance, "t50")
			require.InEpsilon(t, model.T99.Seconds(), real.t99, tolerance, "t99")
			require.InDelta(t, model.Peak, real.peak, max(model.Peak*(tolerance+0.05), 4), "peak: the dials of a few processes, too few for 10 %%")
			require.InEpsilon(t, model.Dials, real.dials, tolerance, "dials")
		})
	}
}

// fullJitter is a policy that draws nothing alike to what the default does.
func fullJitter() backoff.Policy {
	return backoff.First(2*time.Second, &backoff.Exponential{OverloadCap: 5 * time.Minute})
}

// impatient gives handshakes up that the server would complete.
func impatient() backoff.Policy {
	return backoff.Patient(backoff.First(2*time.Second, &backoff.Exponential{}),
		backoff.Patience{Base: 4 * time.Second, Factor: 1}, backoff.Patience{Base: 4 * time.Second, Factor: 3, Cap: -1})
}
