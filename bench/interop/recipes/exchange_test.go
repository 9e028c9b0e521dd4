//go:build linux

package recipes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// exchange is an exchange with two order books. It writes each state of a book to a file, as the recipes print it.
// The numbers of a later process are higher than those of an earlier one.
type exchange struct {
	truth  *os.File
	pings  *os.File
	halted atomic.Bool // nothing is traded any more

	mu       sync.Mutex // guards what follows; not held across the network
	books    map[string]*orders
	members  map[*member]bool
	messages int // to all members; one in 40 is left out
}

// orders is one book.
type orders struct {
	seq        uint64
	bids, asks map[int]int
}

// member is a client.
type member struct {
	out     chan any // holds 4096 messages; a client that reads more slowly is cut
	symbols map[string]bool
	joined  bool // updates come joined, and no snapshots
}

// change is an update or a snapshot.
type change struct {
	Type       string `json:"type,omitempty"`
	Book       string `json:"book"`
	Seq        uint64 `json:"seq,omitempty"`
	First      uint64 `json:"first,omitempty"`
	Last       uint64 `json:"last,omitempty"`
	Bids, Asks [][2]int
}

func serveExchange(port string, args []string) error {
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		return f
	}
	x := &exchange{truth: open(args[0]), pings: open(args[0] + ".pings"), books: map[string]*orders{}, members: map[*member]bool{}}
	for _, symbol := range []string{"BTC", "ETH"} {
		x.books[symbol] = &orders{uint64(time.Now().UnixMicro()), map[int]int{100: 1}, map[int]int{101: 1}}
		x.write(symbol) // a client may ask for a snapshot before the first change
	}
	go x.trade() // ends with the process
	http.HandleFunc("/halt", func(http.ResponseWriter, *http.Request) { x.halted.Store(true) })
	http.HandleFunc("/depth", x.depth)
	http.HandleFunc("/ws", x.serve)
	http.HandleFunc("/stream", x.serve)
	return http.ListenAndServe("127.0.0.1:"+port, nil)
}

// trade changes a book by one to three updates every 4 ms. In the end it changes both books once more, and leaves
// nothing out: a client cannot know that the last update of a book is missing.
func (x *exchange) trade() {
	for range time.Tick(4 * time.Millisecond) {
		symbols, halted := []string{"BTC", "ETH"}, x.halted.Load()
		if !halted {
			i := rand.IntN(2)
			symbols = symbols[i : i+1]
		}
		x.mu.Lock()
		for _, symbol := range symbols {
			x.change(symbol)
		}
		x.mu.Unlock()
		if halted {
			return
		}
	}
}

// change changes a book by one to three updates. The caller holds mu.
func (x *exchange) change(symbol string) {
	joined := change{Book: symbol, First: x.books[symbol].seq + 1}
	for range 1 + rand.IntN(3) {
		u := x.books[symbol].update()
		x.write(symbol)
		u.Type, u.Book, u.Seq = "update", symbol, x.books[symbol].seq
		joined.Bids, joined.Asks = append(joined.Bids, u.Bids...), append(joined.Asks, u.Asks...)
		x.send(symbol, false, u)
	}
	joined.Last = x.books[symbol].seq
	x.send(symbol, true, joined)
}

// write writes the state of a book into the file of all states. The caller holds mu, or nobody else has x.
func (x *exchange) write(symbol string) {
	b := x.books[symbol]
	fmt.Fprintln(x.truth, symbol, b.seq, b.bids, b.asks)
}

// update changes one level.
func (b *orders) update() (c change) {
	b.seq++
	away, lots := 1+rand.IntN(5), rand.IntN(4)
	side, levels, price := b.bids, &c.Bids, 100-away
	if rand.IntN(2) == 0 {
		side, levels, price = b.asks, &c.Asks, 100+away
	}
	*levels = [][2]int{{price, lots}}
	if side[price] = lots; lots == 0 {
		delete(side, price)
	}
	return c
}

// send sends a change to the members that want it. The caller holds mu.
func (x *exchange) send(symbol string, joined bool, c change) {
	for m := range x.members {
		if m.symbols[symbol] && m.joined == joined {
			if x.messages++; x.messages%40 != 0 || x.halted.Load() {
				m.send(c)
			}
		}
	}
}

func (m *member) send(v any) {
	select {
	case m.out <- v:
	default:
		panic("a client reads too slowly")
	}
}

// snapshot returns a copy of a book.
func (x *exchange) snapshot(symbol string) change {
	b := x.books[symbol]
	c := change{Type: "snapshot", Book: symbol, Seq: b.seq, Last: b.seq}
	for price, lots := range b.bids {
		c.Bids = append(c.Bids, [2]int{price, lots})
	}
	for price, lots := range b.asks {
		c.Asks = append(c.Asks, [2]int{price, lots})
	}
	return c
}

func (x *exchange) depth(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	c := x.snapshot(r.FormValue("book"))
	x.mu.Unlock()
	_ = json.NewEncoder(w).Encode(c)
}

// serve serves a client. On /ws one that does not ping for 3 s is cut.
func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	m := &member{out: make(chan any, 4096), symbols: map[string]bool{}, joined: r.URL.Path == "/stream"}
	for _, symbol := range strings.Split(r.FormValue("books"), ",") {
		m.symbols[symbol] = true
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x.mu.Lock()
	x.members[m] = true
	x.mu.Unlock()
	defer func() { x.mu.Lock(); delete(x.members, m); x.mu.Unlock() }()
	go func() { // ends with ctx
		for {
			select {
			case v := <-m.out:
				text, _ := json.Marshal(v)
				if ws.Write(ctx, websocket.MessageText, text) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		patience, done := context.WithTimeout(ctx, 3*time.Second)
		if m.joined {
			patience = ctx
		}
		_, data, err := ws.Read(patience)
		done()
		if err != nil {
			return
		}
		x.answer(m, data)
	}
}

// answer carries out a request.
func (x *exchange) answer(m *member, data []byte) {
	var r struct {
		Op    string
		Books []string
	}
	_ = json.Unmarshal(data, &r)
	x.mu.Lock()
	defer x.mu.Unlock()
	if r.Op == "ping" {
		fmt.Fprintln(x.pings, "ping")
		m.send(map[string]string{"type": "pong"})
	}
	for _, symbol := range r.Books {
		m.send(x.snapshot(symbol))
		m.symbols[symbol] = true
	}
}
