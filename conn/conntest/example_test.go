package conntest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// A client over a network in memory gets the errors of real sockets when its connection is
// reset and when its server is away.
func Example() {
	n := new(conntest.Network)
	s := conntest.NewServer(n, "feed.test:80", conntest.Echo)
	ctx := context.Background()
	options := &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: n.DialContext}}}

	c, _, err := websocket.Dial(ctx, "ws://feed.test/", options)
	if err != nil {
		panic(err)
	}
	c.Write(ctx, websocket.MessageText, []byte("hello"))
	_, data, _ := c.Read(ctx)
	fmt.Printf("%s\n", data)

	n.Conns("feed.test:80")[0].Reset()
	_, _, err = c.Read(ctx)
	fmt.Println("reset:", errors.Is(err, syscall.ECONNRESET))
	c.CloseNow()

	s.Close()
	_, _, err = websocket.Dial(ctx, "ws://feed.test/", options)
	fmt.Println("refused:", errors.Is(err, syscall.ECONNREFUSED))
	fmt.Println("dials:", len(n.Dials("feed.test:80")), "left open:", n.Count("").Open)
	// Output:
	// hello
	// reset: true
	// refused: true
	// dials: 2 left open: 0
}

// Each dial takes the next fault, and the last one stays until the address is healed.
func ExampleNetwork_Fault() {
	n := new(conntest.Network)
	l, _ := n.Listen("feed.test:80")
	defer l.Close()
	n.Fault("feed.test:80", conntest.Fault{Err: syscall.ECONNREFUSED}, conntest.Fault{Hang: true})

	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := n.DialContext(ctx, "tcp", "feed.test:80")
		fmt.Println(err)
		cancel()
	}
	// Output:
	// dial tcp feed.test:80: connect: connection refused
	// dial tcp feed.test:80: context deadline exceeded
}

// Cut ends a connection after so many bytes, here inside an answer.
func ExamplePipe_Cut() {
	n := new(conntest.Network)
	l, _ := n.Listen("feed.test:80")
	defer l.Close()
	client, _ := n.DialContext(context.Background(), "tcp", "feed.test:80")
	defer client.Close()
	server, _ := l.Accept()
	defer server.Close()

	n.Conns("feed.test:80")[0].Cut(conntest.ToClient, 3)
	io.WriteString(server, "hello")
	data, err := io.ReadAll(client)
	fmt.Printf("%q %v\n", data, err)
	// Output:
	// "hel" <nil>
}

// A Server can turn a client away: here it does so twice, and then accepts it.
func ExampleServer_Next() {
	n := new(conntest.Network)
	s := conntest.NewServer(n, "feed.test:80", conntest.Echo)
	defer s.Close()
	s.Next(conntest.Status(503, conntest.RetryAfter("7")), conntest.Status(401, nil), s.Accept)

	options := &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: n.DialContext}}}
	for range 3 {
		c, resp, _ := websocket.Dial(context.Background(), "ws://feed.test/", options)
		fmt.Printf("%d %q\n", resp.StatusCode, resp.Header.Get("Retry-After"))
		if c != nil {
			c.CloseNow()
		}
	}
	// Output:
	// 503 "7"
	// 401 ""
	// 101 ""
}

// A Fake is a connection without a protocol. What Deliver gives it, Read returns.
func ExampleFake() {
	f := conntest.NewFake(nil)
	f.Deliver(conn.Message{Type: conn.Text, Data: []byte("tick")})
	f.Fail(io.ErrUnexpectedEOF)
	for {
		m, err := f.Read(nil)
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%s\n", m.Data)
	}
	// Output:
	// tick
	// read: unexpected EOF
}

// Poison overwrites a buffer before it is used again, so that a message which was
// kept for too long is not what it was.
func ExamplePoison() {
	f := conntest.NewFake(nil)
	f.Deliver(conn.Message{Type: conn.Text, Data: []byte("one")}, conn.Message{Type: conn.Text, Data: []byte("2")})
	c := conntest.Poison(f)

	kept, _ := c.Read(nil)
	c.Read(kept.Data)
	fmt.Printf("%q\n", kept.Data)
	// Output:
	// "2\xdb\xdb"
}

// Pair makes two connections, each of which reads what the other writes. The test of a
// client plays the server with one of them.
func ExamplePair() {
	client, server := conntest.Pair(nil)
	_ = client.Write(conn.TextMessage("hello"))
	m, err := server.Read(nil)
	fmt.Println(string(m.Data), err)

	_ = server.Close(context.Background(), 1012, "restart")
	_, err = client.Read(nil)
	fmt.Println(err)
	// Output:
	// hello <nil>
	// read: closed by the peer: 1012 "restart"
}

// Frames sends frames that no library would send, here half a message and then the end.
func ExampleFrames() {
	n := new(conntest.Network)
	s := conntest.NewServer(n, "feed.test:80", conntest.Frames(
		conntest.Frame{Head: conntest.TextFrame, Payload: []byte("half a mess")},
		conntest.Frame{Head: conntest.Fin | 0x8, Payload: []byte{0x03, 0xe9}},
	))
	defer s.Close()
	options := &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: n.DialContext}}}
	c, _, err := websocket.Dial(context.Background(), "ws://feed.test/", options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	_, data, err := c.Read(context.Background())
	fmt.Printf("%q %v\n", data, websocket.CloseStatus(err))
	// Output: "half a mess" StatusGoingAway
}
