package reconnect_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// exchange is the server. It counts how many clients are logging in at a time.
type exchange struct {
	mu      sync.Mutex
	logins  int // under way
	most    int // that were at a time
	clients map[*websocket.Conn]bool
}

func (e *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.count(1)
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		e.count(-1)
		return
	}
	defer c.CloseNow()
	_, _, err = c.Read(r.Context()) // the account
	time.Sleep(time.Millisecond)    // which the exchange looks up
	e.mu.Lock()
	e.clients[c] = true
	e.mu.Unlock()
	e.count(-1)
	if err != nil || c.Write(r.Context(), websocket.MessageText, []byte("welcome")) != nil {
		return
	}
	_, _, _ = c.Read(r.Context()) // until either side has closed
}

func (e *exchange) count(change int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logins += change
	e.most = max(e.most, e.logins)
}

// restart cuts all clients off.
func (e *exchange) restart() {
	e.mu.Lock()
	clients := slices.Collect(maps.Keys(e.clients))
	clear(e.clients)
	e.mu.Unlock()
	for _, c := range clients {
		c.CloseNow()
	}
}

// A gateway keeps many connections to one host. They share a gate, which lets a few dials
// go out at a time and holds all of them when the server asks one of them to wait, so that
// the gateway does not overrun a server that comes back.
func Example_gateway() {
	e := &exchange{clients: make(map[*websocket.Conn]bool)}
	server := httptest.NewServer(e)
	defer server.Close()

	gate, err := budget.NewGate(&budget.GateOptions{Concurrent: 4}) // default: 16
	if err != nil {
		fmt.Println(err)
		return
	}
	const accounts = 20
	ready := make(chan struct{}, 2*accounts) // one for each session
	trace := &reconnect.Trace{SessionReady: func(*reconnect.Session) { ready <- struct{}{} }}
	for i := range accounts {
		account := fmt.Sprint("account ", i)
		c, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, &reconnect.Options{
			OnSession: func(_ context.Context, o *reconnect.Opening) error {
				if err := o.Write(conn.TextMessage(account)); err != nil {
					return err
				}
				_, err := o.Read() // "welcome"
				return err
			},
			Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}, // because this program reads nothing
			Run: reconnect.RunOptions{
				Name:   account, // for the trace
				Gate:   gate,    // the host comes from the URL
				Trace:  trace,
				Policy: &backoff.Exponential{Base: time.Millisecond}, // so that the example is quick: leave it out
			},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer c.Close()
	}

	for _, when := range []string{"start", "restart"} {
		for range accounts {
			<-ready
		}
		e.mu.Lock()
		fmt.Printf("%s: %d connections, never more than 4 logins at a time: %v\n", when, accounts, e.most <= 4)
		e.mu.Unlock()
		if when == "start" {
			e.restart()
		}
	}
	// Output:
	// start: 20 connections, never more than 4 logins at a time: true
	// restart: 20 connections, never more than 4 logins at a time: true
}
