package reconnect_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// A client of a WebSocket server that restarts after each message.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, []byte("price 42"))
		_ = c.Close(websocket.StatusServiceRestart, "restart")
	}))
	defer server.Close()

	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, &reconnect.Options{
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	for m, err := range feed.Messages(context.Background()) {
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
			fmt.Println(seam) // what was built from the messages before it is stale
			continue
		}
		if err != nil { // the end
			fmt.Println(err)
			return
		}
		fmt.Printf("session %d: %s\n", m.Session, m.Data)
		if m.Session == 2 {
			break
		}
	}
	// Output:
	// session 1: price 42
	// session 1 ended: read: closed by the peer: 1012 "restart"
	// session 2: price 42
}

// Run keeps any connection open that can be closed; here it is a stream of lines.
func ExampleRun() {
	dial := func(context.Context) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { // ends when the client has closed
			fmt.Fprintln(server, "hello")
			server.Close()
		}()
		return client, nil
	}
	serve := func(_ context.Context, c net.Conn, s *reconnect.Session) error {
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			s.Ready() // the session is of use, and counts as up from now on
			fmt.Println("session", s.Number, "says", lines.Text())
			if s.Number == 2 {
				return backoff.Permanent(errors.New("heard enough"))
			}
		}
		return lines.Err() // a nil is redialed too
	}
	err := reconnect.Run(context.Background(), dial, serve, &reconnect.RunOptions{
		Policy: &backoff.Exponential{Base: time.Millisecond},
	})
	fmt.Println(err)
	// Output:
	// session 1 says hello
	// session 2 says hello
	// heard enough
}

// A DialFunc opens connections in a way of your own, here lines over TCP. In a program that
// needs no more than that, a dialer of package dialer does it with limits and TLS.
func ExampleDialFunc() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go func() { // ends when the client has closed
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		_, _ = io.Copy(nc, nc)
	}()

	dial := reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		return conn.NewFramed(nc, conn.Lines{}, &conn.FramedOptions{Type: conn.Text})
	})
	c, err := reconnect.New(dial, &reconnect.Options{WhenDown: reconnect.WhenDownWait})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	fmt.Println(c.Write(ctx, conn.TextMessage("hello"))) // waits for the first session
	m, err := c.Read(ctx, nil)
	fmt.Println(string(m.Data), err)
	// Output:
	// <nil>
	// hello <nil>
}
