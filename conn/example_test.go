package conn_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
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
	c, err := conn.NewWebSocket(ws, &wire, &conn.WebSocketOptions{Limits: conn.Limits{WriteTimeout: 5 * time.Second}})
	if err != nil {
		fmt.Println(err)
		return
	}
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

// logged is a connection that reports what is written. It embeds the Transport, so that the
// connection loses nothing, and replaces both ways to write.
type logged struct {
	conn.Conn
	conn.Transport
}

func (l logged) Write(m conn.Message) error {
	_, err := l.WriteBatch([]conn.Message{m})
	return err
}

func (l logged) WriteBatch(ms []conn.Message) (n int, err error) {
	n, err = l.Transport.WriteBatch(ms)
	fmt.Printf("%d of %d written\n", n, len(ms))
	return n, err
}

// Whoever wraps a Transport embeds it beside the Conn.
func ExampleTransport() {
	ours, theirs := net.Pipe()
	go io.Copy(io.Discard, theirs) // ends with the connection
	framed, err := conn.NewFramed(ours, conn.Lines{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var c conn.Conn = logged{framed, framed}
	defer c.CloseNow()
	_ = c.Write(conn.TextMessage("one"))
	_, transport := c.(conn.Transport)
	fmt.Println(transport)
	// Output:
	// 1 of 1 written
	// true
}

// A protocol of bytes, here lines of text, over a WebSocket. MQTT, STOMP and SSH clients take such a
// net.Conn in place of a TCP connection.
func ExampleNetConn() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, _ := websocket.Accept(w, r, nil)
		for _, part := range []string{"hel", "lo\nwor", "ld\n"} {
			_ = ws.Write(r.Context(), websocket.MessageBinary, []byte(part))
		}
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}))
	defer server.Close()

	d := &dialer.WebSocket{URL: "ws" + strings.TrimPrefix(server.URL, "http")}
	c, err := d.Dial(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	nc := conn.NetConn(c, conn.Binary)
	defer nc.Close()
	lines := bufio.NewScanner(nc)
	for lines.Scan() {
		fmt.Println(lines.Text())
	}
	fmt.Println(lines.Err())
	// Output:
	// hello
	// world
	// <nil>
}

// A server that writes one JSON text a line, and several lines in a frame.
func ExampleSplit() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, _ := websocket.Accept(w, r, nil)
		_ = ws.Write(r.Context(), websocket.MessageText, []byte("{\"id\":1}\n{\"push\":{}}\n"))
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}))
	defer server.Close()

	d := &dialer.WebSocket{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Split: conn.Split{Func: bufio.ScanLines}}
	c, err := d.Dial(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	for {
		m, err := c.Read(nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", m.Data)
	}
	// Output:
	// {"id":1}
	// {"push":{}}
	// read: closed by the peer: 1000
}
