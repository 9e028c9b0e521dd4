package debug_test

import (
	"context"
	"crypto/rand"
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

// A connection to a server is shown on a page, to whoever has the token.
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

	token := rand.Text() // or what the people who run the program have chosen
	page := debug.New(&debug.Options{Title: "my program", Token: token})
	defer page.Close()
	page.Register("feed", feed, nil)
	url, err := page.Listen(":0") // a browser opens it with ?token= and the token behind it
	if err != nil {
		log.Fatal(err)
	}

	if err := feed.AwaitReady(context.Background()); err != nil {
		log.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodGet, url+"?json", nil)
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
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
