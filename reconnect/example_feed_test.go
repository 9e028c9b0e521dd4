package reconnect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// feedMessage is a message to or from the feed.
type feedMessage struct {
	Op     string         `json:"op"` // "subscribe", "subscribed", "snapshot" or "change"
	Prices map[string]int `json:"prices,omitempty"`
}

// serveFeed returns a handler that waits for a subscription, sends all prices, and then
// one change. The server restarts after it has served the first client.
func serveFeed() http.Handler {
	var visits atomic.Int32
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		ctx, visit := r.Context(), int(visits.Add(1))
		var request feedMessage
		if err := wsjson.Read(ctx, c, &request); err != nil || request.Op != "subscribe" {
			return
		}
		for _, m := range []feedMessage{
			{Op: "subscribed"},
			{Op: "snapshot", Prices: map[string]int{"AAPL": 100 * visit, "MSFT": 7}},
			{Op: "change", Prices: map[string]int{"AAPL": 100*visit + 1}},
		} {
			if err := wsjson.Write(ctx, c, m); err != nil {
				return
			}
		}
		if visit == 1 {
			_ = c.Close(websocket.StatusServiceRestart, "restart")
			return
		}
		_, _, _ = c.Read(ctx) // until the client has closed
	})
}

// subscribe is the OnSession of the feed. It runs on each new connection.
func subscribe(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(conn.TextMessage(`{"op":"subscribe"}`)); err != nil {
		return err // a failed attempt: the Conn waits, and dials again
	}
	for {
		m, err := o.Read()
		if err != nil {
			return err
		}
		var answer feedMessage
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return err
		}
		if answer.Op == "subscribed" {
			return nil // the session is ready
		}
		if err := o.Deliver(m); err != nil { // it came early, but belongs to the feed
			return err
		}
	}
}

// A market-data feed: OnSession subscribes on each new connection, and a seam says that
// messages may be missing, so that what was built from those before it is thrown away.
func Example_feed() {
	server := httptest.NewServer(serveFeed())
	defer server.Close()

	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, &reconnect.Options{
		OnSession: subscribe,
		Run:       reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	var prices map[string]int // nil: not known
	for m, err := range feed.Messages(context.Background()) {
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
			prices = nil // a stale price is worse than none
			fmt.Println("prices unknown:", seam)
			continue
		}
		if err != nil {
			fmt.Println(err) // the context has ended, or the Conn
			return
		}
		var update feedMessage
		if err := json.Unmarshal(m.Data, &update); err != nil {
			feed.Redial(m.Session, err) // this connection is of no use
			continue
		}
		switch update.Op {
		case "snapshot":
			prices = update.Prices
		case "change":
			maps.Copy(prices, update.Prices)
			fmt.Printf("session %d: AAPL %d, MSFT %d\n", m.Session, prices["AAPL"], prices["MSFT"])
		}
		if m.Session == 2 && update.Op == "change" {
			break
		}
	}
	// Output:
	// session 1: AAPL 101, MSFT 7
	// prices unknown: session 1 ended: read: closed by the peer: 1012 "restart"
	// session 2: AAPL 201, MSFT 7
}
