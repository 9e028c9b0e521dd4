package debug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/debug"
)

// A connection to a server is shown on a page.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			<-c.CloseRead(context.Background()).Done()
		}
	}))
	defer server.Close()
	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + strings.TrimPrefix(server.URL, "http") + "/v1?token=secret"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer feed.Close()

	page := debug.New(&debug.Options{Title: "my program"})
	defer page.Close()
	page.Register("feed", feed, nil)
	url, err := page.Listen(":0") // open it in a browser
	if err != nil {
		log.Fatal(err)
	}

	if err := feed.AwaitReady(context.Background()); err != nil {
		log.Fatal(err)
	}
	resp, err := http.Get(url + "?json")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var s debug.Snapshot
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		log.Fatal(err)
	}
	c := s.Conns[0]
	fmt.Println(s.Title, c.Name, c.State, strings.TrimPrefix(c.Endpoint, "ws://"+server.Listener.Addr().String()))
	// Output: my program feed ready /v1
}
