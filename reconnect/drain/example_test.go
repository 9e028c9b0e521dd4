package drain_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/drain"
)

// A server of WebSockets that leaves the way it came: one connection after another.
func Example() {
	group, err := drain.New(&drain.Options{
		Lead:   10 * time.Millisecond,  // so that the example ends soon; the defaults are 15 s
		Window: 100 * time.Millisecond, // and 60 s
	})
	if err != nil {
		fmt.Println(err) // an option is wrong
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/ready", group.ReadyHandler())
	mux.Handle("/ws", group.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		member := group.Add(func(code int, reason string) error { return c.Close(websocket.StatusCode(code), reason) })
		defer member.Remove()
		<-c.CloseRead(r.Context()).Done() // your protocol
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	// A client of this library, and of another one.
	ctx := context.Background()
	c, _, err := websocket.Dial(ctx, server.URL+"/ws", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	closed := make(chan websocket.StatusCode, 1)
	go func() { // ends with the connection
		_, _, err := c.Read(ctx)
		closed <- websocket.CloseStatus(err)
	}()

	fmt.Println("drained:", group.Drain(ctx)) // at SIGTERM
	fmt.Println("closed:", int(<-closed))
	_, answer, _ := websocket.Dial(ctx, server.URL+"/ws", nil)
	fmt.Println("refused:", answer.StatusCode, answer.Header.Get("Retry-After") != "")
	// Output:
	// drained: <nil>
	// closed: 1012
	// refused: 503 true
}

// A protocol with a message for it warns its clients. A client of this library then opens its
// next session before it leaves the present one.
func ExampleGroup_AddNotice() {
	group, err := drain.New(&drain.Options{Lead: -1, Window: time.Minute, Warn: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The client may be ready, and the drain begin, before the connection is added. Drain waits for
	// it, because its handler is behind Handler, and it is warned all the same.
	server := httptest.NewServer(group.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		member := group.AddNotice(
			func(code int, reason string) error { return c.Close(websocket.StatusCode(code), reason) },
			func(by time.Time) {
				ctx, cancel := context.WithDeadline(context.Background(), by)
				defer cancel()
				c.Write(ctx, websocket.MessageText, []byte("leaving by "+by.Format(time.RFC3339Nano)))
			})
		defer member.Remove()
		<-c.CloseRead(r.Context()).Done() // your protocol
	})))
	defer server.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if err := client.AwaitReady(ctx); err != nil {
		fmt.Println(err)
		return
	}
	drained := make(chan error, 1)
	go func() { drained <- group.Drain(ctx) }()

	m, err := client.Read(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	by, err := time.Parse("leaving by "+time.RFC3339Nano, string(m.Data))
	client.Rotate(m.Session, reconnect.Advice{By: by, Cause: fmt.Errorf("the server restarts")})
	fmt.Println("warned:", err == nil && time.Until(by) <= time.Minute)
	client.Close() // so that the example ends soon
	fmt.Println("drained:", <-drained)
	// Output:
	// warned: true
	// drained: <nil>
}
