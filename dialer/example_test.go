package dialer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Dial opens one connection. A program that wants it to stay open gives the WebSocket to
// reconnect.New instead.
func ExampleWebSocket() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		_ = c.Write(r.Context(), websocket.MessageText, []byte("welcome"))
		_, _, _ = c.Read(r.Context()) // until the client has closed
	}))
	defer server.Close()

	d := &dialer.WebSocket{
		URL:              "ws" + server.URL[len("http"):],
		HandshakeTimeout: 5 * time.Second,
	}
	c, err := d.Dial(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	m, err := c.Read(nil)
	fmt.Println(m.Type == conn.Text, string(m.Data), err)
	// Output: true welcome <nil>
}

// Prepare sets the credentials of each dial, and makes new ones when the server has refused
// the last.
func ExampleWebSocket_prepare() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()

	token := "old"
	d := &dialer.WebSocket{
		URL: "ws" + server.URL[len("http"):],
		Prepare: func(ctx context.Context, r *dialer.Request) error {
			if backoff.AttemptFrom(ctx).Refresh {
				token = "new"
			}
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		},
	}
	for range 2 {
		_, _ = d.Dial(context.Background())
	}
	// Output:
	// Bearer old
	// Bearer new
}

// An Error says what the server answered, and holds no secret: the query of the URL is left
// out.
func ExampleError() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	d := &dialer.WebSocket{URL: "ws" + server.URL[len("http"):] + "/feed?token=secret"}
	_, err := d.Dial(context.Background())
	if e, ok := errors.AsType[*dialer.Error](err); ok {
		e.Endpoint = "wss://host/path" // the port differs from run to run
		fmt.Println(e)
		fmt.Println(e.StatusCode, e.RetryAfter)
	}
	// Output:
	// dial wss://host/path: 503 Service Unavailable (retry after 7s)
	// 503 7s
}
