package subscription_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/subscription"
)

// message is a message of the exchange, in both directions.
type message struct {
	Method string   `json:"method,omitempty"`
	ID     string   `json:"id,omitempty"`
	Params []string `json:"params,omitempty"`
	Error  string   `json:"error,omitempty"`
	Symbol string   `json:"symbol,omitempty"`
	Price  int      `json:"price,omitempty"`
}

// exchange answers each request, and sends a price for each symbol. It knows no symbol PEAR, and
// closes the connection after it has been asked for MSFT.
func exchange(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		var m message
		if wsjson.Read(r.Context(), c, &m) != nil {
			return
		}
		answer := message{ID: m.ID}
		for _, symbol := range m.Params {
			if symbol == "PEAR" {
				answer.Error = "unknown symbol"
			}
		}
		_ = wsjson.Write(r.Context(), c, answer)
		for i, symbol := range m.Params {
			if answer.Error == "" {
				_ = wsjson.Write(r.Context(), c, message{Symbol: symbol, Price: 100 + i})
			}
			if symbol == "MSFT" && len(m.Params) == 1 {
				_ = c.Close(websocket.StatusServiceRestart, "restart")
			}
		}
	}
}

// Three symbols are wanted, one of which the exchange does not know. A fourth is added while the
// connection lives, which is lost then. After that the exchange is asked for what it knows.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(exchange))
	defer server.Close()

	symbols, err := subscription.New(&subscription.Options[string]{
		Encode: func(r *subscription.Request[string]) (conn.Message, error) {
			data, err := json.Marshal(message{Method: r.Op.String(), ID: r.ID, Params: r.Keys})
			return conn.Message{Type: conn.Text, Data: data}, err
		},
		Answer: func(m reconnect.Message) (a subscription.Answer[string], ok bool) {
			var v message
			if json.Unmarshal(m.Data, &v) != nil || v.ID == "" {
				return a, false // a price
			}
			if a.ID = v.ID; v.Error != "" {
				a.Err = errors.New(v.Error)
			}
			return a, true
		},
		OnReject: func(subscription.Rejection[string]) subscription.Decision { return subscription.DecisionDrop },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	symbols.Add("AAPL", "PEAR", "NVDA")

	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, &reconnect.Options{
		Layers: []*reconnect.Layer{symbols.Layer()},
		Pace:   budget.Window{N: 100, Per: time.Second},
		Run:    reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	ctx := context.Background()
	fmt.Println(symbols.Synced(ctx))
	for _, s := range symbols.Snapshot() {
		fmt.Println(s.Key, s.State)
	}
	for m, err := range feed.Messages(ctx) {
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
			fmt.Println(seam)
			continue
		} else if err != nil {
			fmt.Println(err)
			return
		}
		var v message
		_ = json.Unmarshal(m.Data, &v)
		fmt.Printf("session %d: %s %d\n", m.Session, v.Symbol, v.Price)
		switch {
		case v.Symbol == "AAPL" && m.Session == 1:
			symbols.Add("MSFT")
		case v.Symbol == "MSFT" && m.Session == 2:
			return
		}
	}
	// Output:
	// subscription: rejected in session 1: unknown symbol
	// AAPL held
	// PEAR dropped
	// NVDA held
	// session 1: NVDA 100
	// session 1: AAPL 100
	// session 1: MSFT 100
	// session 1 ended: read: closed by the peer: 1012 "restart"
	// session 2: AAPL 100
	// session 2: NVDA 101
	// session 2: MSFT 102
}
