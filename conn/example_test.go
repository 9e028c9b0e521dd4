package conn_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
)

// NewWebSocket makes a Conn of a WebSocket that is open. In most programs package dialer
// does this. The Wire counts the bytes below, as signs of life.
func ExampleNewWebSocket() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, _ := websocket.Accept(w, r, nil)
		_ = ws.Write(r.Context(), websocket.MessageText, []byte("hello"))
		_ = ws.Close(websocket.StatusServiceRestart, "back in a minute")
	}))
	defer server.Close()

	var wire conn.Wire
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wire.Tap(nc), nil
	}}
	ws, _, err := websocket.Dial(context.Background(), server.URL, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: wire.Transport(transport)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := conn.NewWebSocket(ws, &wire, &conn.WebSocketOptions{Limits: conn.Limits{WriteTimeout: 5 * time.Second}})
	defer c.CloseNow()

	var m conn.Message
	for err == nil {
		if m, err = c.Read(m.Data); err == nil {
			fmt.Printf("%s\n", m.Data)
		}
	}
	closed, ok := errors.AsType[*conn.CloseError](err)
	fmt.Println(err)
	fmt.Println(ok && closed.Code == 1012)
	// Output:
	// hello
	// read: closed by the peer: 1012 "back in a minute"
	// true
}
