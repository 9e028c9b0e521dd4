package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/bench/internal/child"
)

const childArgument = "soak-server"

// IsServer reports whether this process was started as the server of a soak.
func IsServer() bool { return child.Is(childArgument) }

// ServerMain is that server, until its standard input ends. It returns the exit code.
func ServerMain() int { return child.Main(childArgument, serve) }

// setup is what the server gets on its command line.
type setup struct {
	Seed uint64
	Life time.Duration // of a connection, on average; then one of the faults ends it
	Up   time.Duration // of the server, on average; then it is away
	Away time.Duration // how long
}

// report is what the server writes every second.
type report struct {
	Address string
	Open    int64  // connections
	Faults  uint64 // so far
	Posts   uint64 // that were new
	Repeats uint64 // posts that it had already
	Gaps    uint64 // posts before which one is missing: there must be none
}

// server answers honestly, as long as it lets a connection live.
type server struct {
	setup
	open                         atomic.Int64
	faults, posts, repeats, gaps atomic.Uint64

	mu   sync.Mutex // guards what follows
	rand *rand.Rand
	have map[string]uint64 // the newest post of each client
}

func serve(o setup, in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	y := &server{setup: o, rand: rand.New(rand.NewPCG(o.Seed, 0)), have: map[string]uint64{}}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { io.Copy(io.Discard, in); cancel() })
	address := l.Addr().String()
	serving.Go(func() { err = y.upAndDown(ctx, l); cancel() })
	for reports := json.NewEncoder(out); ; {
		r := report{Address: address, Open: y.open.Load(), Faults: y.faults.Load(), Posts: y.posts.Load(), Repeats: y.repeats.Load(), Gaps: y.gaps.Load()}
		if failed := reports.Encode(r); failed != nil {
			return failed
		}
		if !sleep(ctx, time.Second) {
			return err
		}
	}
}

// sleep reports whether d is over before ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// draw returns a time with this mean.
func (y *server) draw(mean time.Duration) time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	return time.Duration(y.rand.ExpFloat64() * float64(mean))
}

// one returns a number below n.
func (y *server) one(n int) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.rand.IntN(n)
}

// upAndDown serves, and every now and then is away: its port refuses, and all connections are reset.
func (y *server) upAndDown(ctx context.Context, l net.Listener) error {
	address := l.Addr().String()
	for {
		up, down := context.WithCancel(ctx)
		h := &http.Server{
			Handler:     http.HandlerFunc(y.connect),
			BaseContext: func(net.Listener) context.Context { return up },
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, tcp{}, c)
			},
		}
		served := make(chan struct{})
		go func() { defer close(served); h.Serve(l) }() // ends at Close
		sleep(ctx, y.Up/2+y.draw(y.Up/2))
		h.Close()
		down() // ends the handlers of connections that were upgraded
		<-served
		if !sleep(ctx, y.Away) {
			return nil
		}
		var err error
		if l, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("come back: %w", err)
		}
	}
}

// tcp is the key of a request's connection.
type tcp struct{}

// connect answers a handshake, in one case of fifty with a refusal or not at all.
func (y *server) connect(w http.ResponseWriter, r *http.Request) {
	switch y.one(100) {
	case 0:
		y.faults.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case 1:
		y.faults.Add(1)
		sleep(r.Context(), 20*time.Second)
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	y.open.Add(1)
	defer y.open.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	p := &peer{server: y, c: c, name: r.FormValue("client"), keys: map[string]uint64{}}
	var work sync.WaitGroup
	work.Go(func() { p.tick(ctx) })
	work.Go(func() { p.end(ctx) })
	p.read(ctx)
	cancel()
	work.Wait()
	c.CloseNow()
}

// peer is one connection, as the server sees it.
type peer struct {
	*server
	c    *websocket.Conn
	name string

	mu   sync.Mutex        // guards keys
	keys map[string]uint64 // the ticks so far of each key that is subscribed

	stalled atomic.Bool // it neither reads nor writes any more
}

func (p *peer) say(ctx context.Context, m message) { wsjson.Write(ctx, p.c, m) }

// read answers until the connection is lost.
func (p *peer) read(ctx context.Context) {
	p.server.mu.Lock()
	have := p.have[p.name]
	p.server.mu.Unlock()
	p.say(ctx, message{Op: opHello, N: have})
	for {
		var m message
		if wsjson.Read(ctx, p.c, &m) != nil {
			return
		}
		if p.stalled.Load() {
			<-ctx.Done()
			return
		}
		switch m.Op {
		case opAsk:
			p.say(ctx, message{Op: opAnswer, N: m.N})
		case opPost:
			p.say(ctx, message{Op: opAck, N: p.post(m.N)})
		default:
			p.subscribe(m)
			p.say(ctx, message{Op: opAgreed, ID: m.ID})
		}
	}
}

// post takes a post, and returns the newest that the server has.
func (p *peer) post(n uint64) uint64 {
	y := p.server
	y.mu.Lock()
	defer y.mu.Unlock()
	switch have := y.have[p.name]; {
	case n <= have:
		y.repeats.Add(1)
	case n > have+1:
		y.gaps.Add(1)
	default:
		y.posts.Add(1)
		y.have[p.name] = n
	}
	return y.have[p.name]
}

func (p *peer) subscribe(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range m.Keys {
		if m.Op != "subscribe" {
			delete(p.keys, k)
		} else if _, there := p.keys[k]; !there { // else it is asked for again, because the answer came late
			p.keys[k] = 0
		}
	}
}

// tick sends a tick for each key, every two seconds.
func (p *peer) tick(ctx context.Context) {
	for sleep(ctx, 2*time.Second) && !p.stalled.Load() {
		p.mu.Lock()
		var ticks []message
		for k := range p.keys {
			p.keys[k]++
			ticks = append(ticks, message{Op: opTick, Keys: []string{k}, N: p.keys[k]})
		}
		p.mu.Unlock()
		for _, m := range ticks {
			p.say(ctx, m)
		}
	}
}

// end ends the connection after its life, in one of several ways.
func (p *peer) end(ctx context.Context) {
	if !sleep(ctx, p.draw(p.Life)) {
		return
	}
	p.faults.Add(1)
	switch way := p.one(6); way {
	case 0: // a reset
		if nc, ok := ctx.Value(tcp{}).(*net.TCPConn); ok {
			nc.SetLinger(0)
		}
		p.c.CloseNow()
	case 1: // the end of the stream, without a close frame
		p.c.CloseNow()
	case 2: // silence, until the client hangs up
		p.stalled.Store(true)
	default:
		codes := []websocket.StatusCode{websocket.StatusGoingAway, websocket.StatusServiceRestart, websocket.StatusTryAgainLater}
		p.c.Close(codes[way-3], "soak "+strconv.Itoa(way))
	}
}
