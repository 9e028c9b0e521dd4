//go:build !js

package main

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// venue is a small exchange on a loopback port. It has three books, whose updates go on while
// the port is closed. The drill calls the methods that make it misbehave, one at a time.
// Any goroutine may call the others.
type venue struct {
	addr string // host:port, the same after a restart

	server  *http.Server
	serving sync.WaitGroup // the goroutine in Serve, and the handlers

	market sync.WaitGroup // the goroutine in trade
	halted context.CancelFunc

	mu       sync.Mutex // guards what follows; never held across I/O
	books    map[string]*book
	used     map[string]bool // the tokens that have served a dial
	clients  map[*member]bool
	numbered uint64           // the number of connections so far
	door     fault            // what happens to new clients: killed, busy, drops, or none
	withheld bool             // the next update is not sent
	did      map[fault]uint64 // how often the venue did each
}

// fault is one way in which the venue misbehaves. The strings are printed.
type fault string

const (
	none     fault = ""
	killed   fault = "is killed and comes back"
	silent   fault = "falls silent (half-open)"
	restarts fault = "closes with 1012"
	busy     fault = "answers 503, Retry-After: 1"
	drops    fault = "accepts and drops"
	shouts   fault = "sends an oversized message"
	skips    fault = "leaves an update out"
)

const (
	secret    = "open sesame"        // signs the tokens
	tick      = 5 * time.Millisecond // between two updates
	middle    = 10000                // bids are below this price, asks above
	depth     = 20                   // the most levels on each side
	oversized = 2 << 20              // bytes
)

var symbols = []string{"ADA-USD", "C-USD", "GO-USD"}

// openVenue opens a venue. The caller closes it.
func openVenue() (*venue, error) {
	v := &venue{
		addr:  "127.0.0.1:0",
		books: map[string]*book{}, used: map[string]bool{}, clients: map[*member]bool{}, did: map[fault]uint64{},
	}
	for _, symbol := range symbols {
		v.books[symbol] = newBook()
	}
	if err := v.open(); err != nil {
		return nil, err
	}
	for range 10 * depth * len(symbols) {
		v.change()
	}
	ctx, halt := context.WithCancel(context.Background())
	v.halted = halt
	v.market.Go(func() { v.trade(ctx) }) // halt waits for it
	return v, nil
}

// close ends the trade and the server, and waits for both.
func (v *venue) close() {
	v.halt()
	v.kill()
}

// open opens the port.
func (v *venue) open() error {
	listener, err := net.Listen("tcp", v.addr)
	if err != nil {
		return err
	}
	v.addr = listener.Addr().String()
	v.setDoor(none)
	v.server = &http.Server{Handler: http.HandlerFunc(v.meet)}
	v.serving.Go(func() { // kill waits for it
		if err := v.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	})
	return nil
}

// kill closes the port and all connections without a close frame, as a killed process does.
// Like the other faults it returns false if it had no effect.
func (v *venue) kill() bool {
	if v.setDoor(killed) == killed {
		return false
	}
	v.server.Close()
	v.cut()
	v.serving.Wait()
	v.note(killed)
	return true
}

// freeze makes every connection look half-open: the venue sends nothing any more, not even
// the answer to a ping, and does not close it. New connections work.
func (v *venue) freeze() bool {
	members := v.all()
	for _, m := range members {
		m.frozen.Store(true)
		v.note(silent)
	}
	return len(members) > 0
}

// restart closes every connection with code 1012.
func (v *venue) restart() bool {
	members := v.all()
	for _, m := range members {
		m.ws.Close(websocket.StatusServiceRestart, "back in a moment")
		v.note(restarts)
	}
	return len(members) > 0
}

// turnAway cuts all connections, and applies f, which is busy or drops, to each new client
// until welcome is called.
func (v *venue) turnAway(f fault) bool {
	v.setDoor(f)
	v.cut()
	return true
}

// welcome ends turnAway.
func (v *venue) welcome() error {
	v.setDoor(none)
	return nil
}

// cut closes every connection without a close frame.
func (v *venue) cut() {
	for _, m := range v.all() {
		m.ws.CloseNow()
	}
}

// setDoor sets the door and returns what it was before.
func (v *venue) setDoor(f fault) (old fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old, v.door = v.door, f
	return old
}

// shout sends every client a message that is larger than its limit.
func (v *venue) shout() bool {
	data := []byte(`{"type":"update","book":"` + strings.Repeat("x", oversized) + `"}`)
	v.mu.Lock()
	defer v.mu.Unlock()
	for m := range v.clients {
		m.send(data)
		v.did[shouts]++
	}
	return len(v.clients) > 0
}

// skip leaves out the next update.
func (v *venue) skip() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.withheld = len(v.clients) > 0
	return v.withheld
}

// halt stops the trade. After it the books do not change.
func (v *venue) halt() {
	v.halted()
	v.market.Wait()
}

// view returns a copy of the book of a symbol.
func (v *venue) view(symbol string) view {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.books[symbol].view()
}

// times returns how often the venue has done f.
func (v *venue) times(f fault) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.did[f]
}

func (v *venue) note(f fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.did[f]++
}

func (v *venue) all() []*member {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.clients))
}

// trade changes the books until ctx ends.
func (v *venue) trade(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			v.change()
		case <-ctx.Done():
			return
		}
	}
}

// change makes one update of one book, and sends it to all subscribers.
func (v *venue) change() {
	v.mu.Lock()
	defer v.mu.Unlock()
	symbol := symbols[rand.IntN(len(symbols))]
	b := v.books[symbol]
	m := message{Type: "update", Book: symbol, Seq: b.seq + 1}
	away, size := 1+rand.IntN(depth), rand.IntN(10) // one in ten removes a level
	if rand.IntN(2) == 0 {
		m.Bids = levels{middle - away: size}
	} else {
		m.Asks = levels{middle + away: size}
	}
	b.update(0, &m)
	skipping := v.withheld
	for c := range v.clients {
		switch {
		case !c.subscribed[symbol]:
		case skipping:
			v.withheld = false
			v.did[skips]++
		default:
			c.sendMessage(m)
		}
	}
}
