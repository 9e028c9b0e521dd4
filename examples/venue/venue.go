//go:build !js

package venue

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Venue is an exchange. Its methods may be called by any goroutine. Those that make trouble do
// so to the clients that are connected at that moment.
type Venue struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // trade, and the handlers

	mu      sync.Mutex // guards what follows; not held across I/O
	closed  bool
	halted  bool
	books   map[string]*Book
	tokens  map[string]bool // that nobody has used
	members map[*member]bool
	count   uint64 // of connections so far
	skip    bool   // the next update is not sent
	door    Door
	ends    []End
}

// End is how a connection ended, as the venue has seen it.
type End struct {
	Conn uint64               // the number of the connection
	Code websocket.StatusCode // of the client's close frame; -1: there was none
}

// Door is what happens to new connections.
type Door int

const (
	Open  Door = iota
	Busy       // they are refused with 503 and Retry-After: 1
	Drops      // they are accepted, and cut
)

// Options are the options of a Venue. The zero value, and nil, have the defaults.
type Options struct {
	// Tick is the time between two updates. Default: 40 ms.
	Tick time.Duration
}

const (
	defaultTick = 40 * time.Millisecond
	middle      = 10000 // cents: bids are below, asks above
	depth       = 20    // the most levels of a side
	maxTokens   = 1000  // that nobody has used; when there are more the venue forgets one
	maxEnds     = 1000  // that Ends returns
	queue       = 1024  // messages for a client that reads slowly
	loginLimit  = 10 * time.Second
)

// New opens a venue, whose trade begins. The caller calls Close.
func New(o *Options) *Venue {
	tick := defaultTick
	if o != nil && o.Tick > 0 {
		tick = o.Tick
	}
	v := &Venue{books: map[string]*Book{}, tokens: map[string]bool{}, members: map[*member]bool{}}
	for _, symbol := range Symbols {
		v.books[symbol] = NewBook()
	}
	for range 10 * depth * len(Symbols) {
		v.change()
	}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	v.work.Go(func() { v.trade(tick) }) // Close waits for it
	return v
}

// Close ends the trade, cuts every connection, and waits until nothing is left.
func (v *Venue) Close() {
	v.mu.Lock()
	v.closed = true // so that no handler begins after this
	v.mu.Unlock()
	v.cancel()
	v.Cut()
	v.work.Wait()
}

// Halt stops the trade. The books do not change any more.
func (v *Venue) Halt() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.halted = true
}

// Resume lets the trade go on after Halt.
func (v *Venue) Resume() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.halted = false
}

// Token answers with a token, which serves for one login.
func (v *Venue) Token(w http.ResponseWriter, _ *http.Request) {
	token := rand.Text()
	v.mu.Lock()
	for old := range v.tokens {
		if len(v.tokens) < maxTokens {
			break
		}
		delete(v.tokens, old)
	}
	v.tokens[token] = true
	v.mu.Unlock()
	w.Header().Set("Cache-Control", "no-store")
	io.WriteString(w, token)
}

// redeem reports whether a token is good, and makes it useless.
func (v *Venue) redeem(token string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	good := v.tokens[token]
	delete(v.tokens, token)
	return good
}

// Book returns a copy of the book of a symbol, nil if there is none.
func (v *Venue) Book(symbol string) *Book {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := v.books[symbol]; b != nil {
		return b.Clone()
	}
	return nil
}

// Clients returns how many clients are logged in.
func (v *Venue) Clients() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.members)
}

// Ends returns how the connections ended so far, the last 1000 at most.
func (v *Venue) Ends() []End {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.ends)
}

// Cut cuts every connection without a close frame, as a killed process does.
func (v *Venue) Cut() { v.each(func(m *member) { m.ws.CloseNow() }) }

// SetDoor sets what happens to new connections.
func (v *Venue) SetDoor(d Door) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.door = d
}

// Shut closes every connection with a close frame. It returns when all clients have answered, or
// after some seconds.
func (v *Venue) Shut(code websocket.StatusCode, reason string) {
	v.each(func(m *member) { m.ws.Close(code, reason) })
}

// Mute makes every connection look half-open: nothing is sent on it any more. New ones work.
func (v *Venue) Mute() { v.each(func(m *member) { m.muted.Store(true) }) }

// Shout sends every client a message that is a text of so many bytes.
func (v *Venue) Shout(size int) {
	const head, tail = `{"type":"update","book":"`, `"}`
	text := []byte(head + strings.Repeat("x", max(0, size-len(head)-len(tail))) + tail)
	v.mu.Lock()
	defer v.mu.Unlock()
	for m := range v.members {
		m.send(text)
	}
}

// Skip leaves out the next update, as a venue with a fault does.
func (v *Venue) Skip() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.skip = true
}

// each calls f for each client at the same time, and waits.
func (v *Venue) each(f func(*member)) {
	v.mu.Lock()
	members := slices.Collect(maps.Keys(v.members))
	v.mu.Unlock()
	var calls sync.WaitGroup
	for _, m := range members {
		calls.Go(func() { f(m) })
	}
	calls.Wait()
}

// trade changes the books until Close.
func (v *Venue) trade(tick time.Duration) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			v.change()
		case <-v.ctx.Done():
			return
		}
	}
}

// change makes one update of one book, and sends it to the subscribers, unless the trade has
// stopped.
func (v *Venue) change() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.halted {
		return
	}
	symbol := Symbols[mathrand.IntN(len(Symbols))]
	b := v.books[symbol]
	m := Message{Type: "update", Book: symbol, Seq: b.Seq + 1}
	away, size := 1+mathrand.IntN(depth), mathrand.IntN(10) // one in ten removes a level
	if mathrand.IntN(2) == 0 {
		m.Bids = Levels{middle - away: size}
	} else {
		m.Asks = Levels{middle + away: size}
	}
	b.Apply(&m)
	text := m.Encode().Data
	skipping := v.skip
	for c := range v.members {
		switch {
		case !c.subscribed[symbol]:
		case skipping:
			v.skip = false
		default:
			c.send(text)
		}
	}
}

// answer carries out a request of m.
func (v *Venue) answer(m *member, r *Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	done := Message{ID: r.ID, Type: "done"}
	if i := slices.IndexFunc(r.Books, func(symbol string) bool { return v.books[symbol] == nil }); i >= 0 {
		m.sendMessage(Message{ID: r.ID, Type: "error", Error: fmt.Sprintf("there is no book %q", r.Books[i])})
		return
	}
	switch r.Op {
	case "ping":
		done = Message{Type: "pong"}
	case "snapshot", "subscribe":
		for _, symbol := range r.Books {
			b := v.books[symbol]
			m.sendMessage(Message{Type: "snapshot", Book: symbol, Seq: b.Seq, Bids: b.Bids, Asks: b.Asks})
			m.subscribed[symbol] = m.subscribed[symbol] || r.Op == "subscribe"
		}
	case "unsubscribe":
		for _, symbol := range r.Books {
			delete(m.subscribed, symbol)
		}
	default:
		done = Message{ID: r.ID, Type: "error", Error: fmt.Sprintf("there is no operation %q", r.Op)}
	}
	m.sendMessage(done)
}
