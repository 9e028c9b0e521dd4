package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// line is a numbered line of a room.
type line struct {
	Room   string `json:"room"`
	Number uint64 `json:"number"`
	Text   string `json:"text"`
}

// rooms is a server with one room. It restarts after the first two lines, and meanwhile two
// more are said.
type rooms struct{ visits atomic.Int32 }

var said = []string{"one", "two", "three", "four", "five"}

// live sends lines as they are said.
func (s *rooms) live(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	if s.visits.Add(1) == 1 {
		_ = wsjson.Write(r.Context(), c, line{"gophers", 1, said[0]})
		_ = wsjson.Write(r.Context(), c, line{"gophers", 2, said[1]})
		_ = c.Close(websocket.StatusServiceRestart, "restart")
		return
	}
	_ = wsjson.Write(r.Context(), c, line{"gophers", 5, said[4]})
	_, _, _ = c.Read(r.Context()) // until the client has closed
}

// past answers with one line after a number: its pages are small.
func (s *rooms) past(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	page := []line{}
	if err == nil && after < 4 {
		page = append(page, line{"gophers", after + 1, said[after]})
	}
	_ = json.NewEncoder(w).Encode(page)
}

// A room whose lines are numbered. What was said while the client was away is fetched over
// HTTP, and comes before what is said now.
func ExampleBridge() {
	s := new(rooms)
	mux := http.NewServeMux()
	mux.HandleFunc("/live", s.live)
	mux.HandleFunc("/past", s.past)
	server := httptest.NewServer(mux)
	defer server.Close()

	b, err := bridge.New(&bridge.Options[string, line]{
		Parse: func(m reconnect.Message) (bridge.Item[string, line], bool) {
			var l line
			err := json.Unmarshal(m.Data, &l)
			return bridge.Item[string, line]{Key: l.Room, Last: l.Number, Value: l}, err == nil
		},
		Past: func(ctx context.Context, r bridge.Request[string]) ([]bridge.Item[string, line], error) {
			return fetch(ctx, fmt.Sprintf("%s/past?room=%s&after=%d", server.URL, url.QueryEscape(r.Key), r.After.Offset))
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):] + "/live"}, &reconnect.Options{
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	for e, err := range b.Events(context.Background(), feed) {
		if err != nil {
			fmt.Println(err) // the context has ended, or the Conn
			return
		}
		switch e.Kind {
		case bridge.EventLive, bridge.EventPast:
			fmt.Println(e.Key, e.Value.Number, e.Value.Text)
		case bridge.EventStale:
			fmt.Println("lines may be missing:", e.Err)
		}
		if e.Last == 5 {
			break
		}
	}
	// Output:
	// gophers 1 one
	// gophers 2 two
	// lines may be missing: session 1 ended: read: closed by the peer: 1012 "restart"
	// gophers 3 three
	// gophers 4 four
	// gophers 5 five
}

// fetch returns a page of lines.
func fetch(ctx context.Context, address string) (page []bridge.Item[string, line], err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var lines []line
	if err := json.NewDecoder(answer.Body).Decode(&lines); err != nil {
		return nil, err
	}
	for _, l := range lines {
		page = append(page, bridge.Item[string, line]{Last: l.Number, Value: l})
	}
	return page, nil
}
