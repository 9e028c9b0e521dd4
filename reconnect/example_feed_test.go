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
	Op     string         `json:"op"` // "subscribe", "subscribed" or "change"
	Prices map[string]int `json:"prices,omitempty"`
}

// feedServer has all prices by HTTP, and tells changes by a WebSocket.
type feedServer struct {
	visits  atomic.Int32
	fetched chan struct{} // somebody has all prices
}

func (s *feedServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/prices", s.prices)
	mux.HandleFunc("/changes", s.changes)
	return mux
}

func (s *feedServer) prices(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode(map[string]int{"AAPL": 100 * int(s.visits.Load()), "MSFT": 7})
	s.fetched <- struct{}{}
}

// changes waits for a subscription, and tells one change after the client has the prices. The server
// restarts after it has served the first client.
func (s *feedServer) changes(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	ctx, visit := r.Context(), int(s.visits.Add(1))
	var request feedMessage
	if err := wsjson.Read(ctx, c, &request); err != nil || request.Op != "subscribe" {
		return
	}
	if err := wsjson.Write(ctx, c, feedMessage{Op: "subscribed"}); err != nil {
		return
	}
	<-s.fetched
	if err := wsjson.Write(ctx, c, feedMessage{Op: "change", Prices: map[string]int{"AAPL": 100*visit + 1}}); err != nil {
		return
	}
	if visit == 1 {
		_ = c.Close(websocket.StatusServiceRestart, "restart")
		return
	}
	_, _, _ = c.Read(ctx) // until the client has closed
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

// fetchPrices returns all prices.
func fetchPrices(url string) (prices map[string]int, err error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&prices)
	return prices, err
}

// A market-data feed: OnSession subscribes on each new connection. A seam says that messages may be
// missing, so that what was built from those before it is thrown away. The mark after the seam says
// that all prices can be fetched again: changes that the server makes after that come by the stream.
func Example_feed() {
	s := &feedServer{fetched: make(chan struct{}, 1)}
	server := httptest.NewServer(s.handler())
	defer server.Close()

	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):] + "/changes"}, &reconnect.Options{
		OnSession:   subscribe,
		MarkRefetch: true,
		Run:         reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	var prices map[string]int // nil: not known
	for m, err := range feed.Messages(context.Background()) {
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok && seam.Refetch {
			if prices, err = fetchPrices(server.URL + "/prices"); err != nil {
				feed.Redial(seam.Session, err) // the next session has a mark, too
			}
			continue
		} else if ok {
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
		if prices == nil {
			continue // all prices are fetched at the next mark
		}
		maps.Copy(prices, update.Prices)
		fmt.Printf("session %d: AAPL %d, MSFT %d\n", m.Session, prices["AAPL"], prices["MSFT"])
		if m.Session == 2 {
			break
		}
	}
	// Output:
	// session 1: AAPL 101, MSFT 7
	// prices unknown: session 1 ended: read: closed by the peer: 1012 "restart"
	// session 2: AAPL 201, MSFT 7
}
