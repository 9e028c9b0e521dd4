package fleet_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// bubble is the world of a fleet.Herd with real reconnect.Conns in it, to be compared with
// the model. Its servers are goroutines.
type bubble struct {
	fleet.Herd
	servers []*liveServer

	mu      sync.Mutex // guards what follows, and the queues of the servers; never held across a wait
	rand    *rand.Rand // which server a dial meets
	playing bool       // the servers do what the Herd says
	lost    time.Time  // when the first server went
	back    time.Time  // when the last is back for good
	next    time.Time  // when the one that went last is back
	clients []bubbleClient
	dials   map[time.Duration]int // by Bin, since the loss
	up      int                   // clients now
	reached map[int]time.Duration // since next: when so many clients were up, at least 1
	upTime  time.Duration         // of all together, until seen
	seen    time.Time
}

// bubbleClient is what the bubble knows of a Conn.
type bubbleClient struct {
	group *fleet.Group
	conn  *conntest.Fake // nil: it is away
	home  *liveServer
	back  time.Duration // since the last return
}

// outcome is what is compared.
type outcome struct {
	t50, t99, peak, dials, upShare float64
	groups                         []float64 // t99 of each
}

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
	if b.Groups == nil {
		b.Groups = []fleet.Group{{Client: b.Client, Share: 1}}
	}
	b.rand = rand.New(rand.NewPCG(b.Seed, 1))
	b.clients, b.dials, b.reached = make([]bubbleClient, b.N), map[time.Duration]int{}, map[int]time.Duration{}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	for k := range max(b.Server.Count, 1) {
		s := newLiveServer(b, k)
		b.servers = append(b.servers, s)
		serving.Go(func() { s.serve(ctx) })
	}
	if b.Fresh {
		b.begin()
	}
	conns := b.dialAll()
	if !b.Fresh {
		time.Sleep(time.Hour) // all are up, and stable
		b.begin()
	}
	share := b.play()
	time.Sleep(b.Watch - time.Since(b.lost))
	out = b.outcome()
	out.upShare = share
	for _, c := range conns {
		c.Close()
	}
	stop()
	serving.Wait()
	return out
}

// dialAll makes the Conns.
func (b *bubble) dialAll() []*reconnect.Conn {
	gates := b.gates()
	conns := make([]*reconnect.Conn, b.N)
	group, sum := 0, b.Groups[0].Share
	for i := range conns {
		for group < len(b.Groups)-1 && float64(i) >= sum*float64(b.N) {
			group++
			sum += b.Groups[group].Share
		}
		b.clients[i].group = &b.Groups[group]
		kind := &b.Groups[group].Client
		o := reconnect.RunOptions{
			Policy: kind.Policy, OneConnection: kind.OneConnection, StableAfter: kind.StableAfter, StartSpread: kind.StartSpread,
			Rand: rand.NewPCG(uint64(i), b.Seed),
		}
		if b.Processes > 0 {
			o.Gate, o.Host = gates[i%b.Processes], "the server"
		}
		dial := reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) { return b.dial(ctx, i) })
		c, err := reconnect.New(dial, &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}, Run: o})
		if err != nil {
			panic(err)
		}
		conns[i] = c
	}
	return conns
}

// gates returns one for each process.
func (b *bubble) gates() []*budget.Gate {
	gates := make([]*budget.Gate, b.Processes)
	for i := range gates {
		g, err := budget.NewGate(&budget.GateOptions{
			Rate: b.Gate.Rate, Burst: b.Gate.Burst, Concurrent: b.Gate.Concurrent, Probe: b.Gate.Probe, Rand: rand.NewPCG(b.Seed, uint64(i)),
		})
		if err != nil {
			panic(err)
		}
		gates[i] = g
	}
	return gates
}

// begin is the first loss.
func (b *bubble) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.playing, b.lost = true, time.Now()
	b.upTime, b.seen = 0, b.lost
	b.back = b.lost.Add(b.Return())
}

// play lets the servers go and come back, and returns when the last is back for good: with
// the share of the connections that were up until then.
func (b *bubble) play() (upShare float64) {
	var playing sync.WaitGroup
	for _, s := range b.servers {
		playing.Go(s.play)
	}
	playing.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	return b.upTime.Seconds() / max(time.Since(b.lost).Seconds(), 1) / float64(b.N)
}

// look counts the time for which connections have been up.
func (b *bubble) look() {
	b.upTime += time.Since(b.seen) * time.Duration(b.up)
	b.seen = time.Now()
}

// dial is a dialer that keeps the limits of the try.
func (b *bubble) dial(ctx context.Context, i int) (conn.Conn, error) {
	b.mu.Lock()
	s := b.servers[i%len(b.servers)]
	if b.playing {
		b.dials[time.Since(b.lost)/fleet.Bin]++
		s = b.servers[b.rand.IntN(len(b.servers))]
	}
	b.mu.Unlock()
	try, began := backoff.AttemptFrom(ctx), time.Now()
	try.Connect = cmp.Or(try.Connect, backoff.DefaultConnect)
	try.Handshake = cmp.Or(try.Handshake, backoff.DefaultHandshake)
	mine, err := s.connect(ctx, try.Connect)
	if err != nil {
		return nil, err
	}
	switch {
	case b.clients[i].group.Client.Whole:
		try.Handshake = try.Connect - time.Since(began)
	case try.Connected != nil:
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
	return b.answered(i, s), nil
}

// answered begins a session.
func (b *bubble) answered(i int, s *liveServer) conn.Conn {
	f := conntest.NewFake(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	c := &b.clients[i]
	c.conn, c.home, c.back = f, s, max(time.Since(b.back), 0)
	b.up++
	if b.reached[b.up] == 0 {
		b.reached[b.up] = max(time.Since(b.next), 1)
	}
	return f.Conn()
}

func (b *bubble) outcome() outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := outcome{t50: b.when(50), t99: b.when(99)}
	for _, n := range b.dials {
		o.peak = max(o.peak, float64(n))
		o.dials += float64(n) / float64(b.N)
	}
	for g := range b.Groups {
		var back []time.Duration
		for i := range b.clients {
			if c := &b.clients[i]; c.group == &b.Groups[g] {
				if c.conn == nil {
					c.back = fleet.Never
				}
				back = append(back, c.back)
			}
		}
		fleet.SortTimes(back)
		o.groups = append(o.groups, fleet.Quantile(back, 0.99).Seconds())
	}
	return o
}

// when is when so many percent of the clients, rounded up, were up at once after the last
// loss; -1: never.
func (b *bubble) when(percent int) float64 {
	if at, ok := b.reached[(percent*b.N+99)/100]; ok {
		return at.Seconds()
	}
	return -1
}
