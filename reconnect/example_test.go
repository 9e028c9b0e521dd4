package reconnect_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The servers of these examples are in memory, and the waits some milliseconds,
// so that the examples can run as tests. Where a policy is given for that reason
// only, a real program leaves it out. A text(s) is the text message s.

// A client of a WebSocket server that restarts after each message.
func Example() {
	var network conntest.Network
	server := conntest.NewServer(&network, "feed.example:80",
		conntest.Frames(
			conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte("price 42")},
			conntest.Frame{Head: conntest.Fin | conntest.CloseFrame, Payload: conntest.ClosePayload(1012, "restart")},
		))
	defer server.Close()

	feed, err := reconnect.New(&dialer.WebSocket{
		URL:         "ws://feed.example/v1",
		DialContext: network.DialContext, // a real program leaves this out
	}, &reconnect.Options{
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	for m, err := range feed.Messages(context.Background()) {
		var seam *reconnect.Seam
		switch {
		case errors.As(err, &seam): // whatever was built from messages before it is stale
			fmt.Println(seam)
			continue
		case err != nil: // the end
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

// Run keeps any connection that can be closed; here it is a stream of lines.
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
			s.Ready() // it works: from now on the session counts as up
			fmt.Println("session", s.Number, "says", lines.Text())
			if s.Number == 2 {
				return backoff.Permanent(errors.New("heard enough"))
			}
		}
		return lines.Err() // nil too is redialed
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

// Pull: the program asks for each message, into a buffer of its own.
func ExampleConn_Read() {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		peer := conntest.NewFake(nil)
		peer.Deliver(text("snapshot"), text("update"))
		peer.Fail(io.EOF) // behind them
		return peer, nil
	})
	c, err := reconnect.New(dial, &reconnect.Options{
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer quit(c)

	buf := make([]byte, 0, 1024)
	for range 4 {
		m, err := c.Read(context.Background(), buf)
		var seam *reconnect.Seam
		if errors.As(err, &seam) {
			fmt.Println("forget session", seam.Session)
			continue
		}
		fmt.Println(m.Session, string(m.Data), err)
	}
	// Output:
	// 1 snapshot <nil>
	// 1 update <nil>
	// forget session 1
	// 2 snapshot <nil>
}

// Push: each message is handled in the goroutine that reads it, and so is each seam.
func ExampleOptions_onMessage() {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		peer := conntest.NewFake(nil)
		peer.Deliver(text("snapshot"))
		peer.Fail(io.EOF)
		return peer, nil
	})
	enough := make(chan struct{})
	c, err := reconnect.New(dial, &reconnect.Options{
		OnMessage: func(_ context.Context, m reconnect.Message) { // m.Data is ours until we return
			fmt.Printf("session %d: %s\n", m.Session, m.Data)
			if m.Session == 2 {
				close(enough)
			}
		},
		OnSeam: func(_ context.Context, s *reconnect.Seam) { fmt.Println("forget session", s.Session) },
		Run:    reconnect.RunOptions{Policy: backoff.Limit(&backoff.Exponential{Base: time.Millisecond}, 1, 0)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-enough
	<-c.Done() // this policy gives up after one more try
	fmt.Println(errors.Is(c.Err(), backoff.ErrGaveUp))
	// Output:
	// session 1: snapshot
	// forget session 1
	// session 2: snapshot
	// forget session 2
	// true
}

// OnSession logs in on each new connection. What comes before the answer is
// part of the feed, and handed on.
func ExampleOptions_onSession() {
	peer := conntest.NewFake(nil)
	peer.Deliver(text("price 42"), text("welcome"), text("price 43"))

	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if err := o.Write(text("login")); err != nil {
				return err
			}
			for {
				m, err := o.Read()
				if err != nil {
					return err // a failed attempt
				}
				if string(m.Data) == "welcome" {
					return nil // ready
				}
				if err := o.Deliver(m); err != nil {
					return err
				}
			}
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer quit(c)

	for range 2 {
		m, err := c.Read(context.Background(), nil)
		fmt.Println(string(m.Data), err)
	}
	fmt.Printf("sent: %s\n", peer.Written()[0].Data)
	// Output:
	// price 42 <nil>
	// price 43 <nil>
	// sent: login
}

// Each message that is written has one fate. By default a write fails at once
// while there is no session; with WhenDownWait it waits for one.
func ExampleConn_Write() {
	peer := conntest.NewFake(nil)
	up := make(chan struct{})
	c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
		select {
		case <-up:
			return peer, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer quit(c)
	ctx := context.Background()

	fmt.Println(c.Write(ctx, text("too early")))

	close(up)
	if err := c.Await(ctx, reconnect.StateReady); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Write(ctx, text("in time")))

	peer.FailWrite(errors.New("connection reset"))
	var failed *reconnect.WriteError
	if err := c.Write(ctx, text("buy 100")); errors.As(err, &failed) {
		fmt.Println(failed.Fate) // ask the server before you send it again
	}
	// Output:
	// message dropped: no session is ready (connecting)
	// <nil>
	// unknown
}

// The newest state can be awaited, and asked for with its circumstances.
func ExampleConn_Await() {
	peer := conntest.NewFake(nil)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{Run: reconnect.RunOptions{
			Policy: &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterEqual}, // so that we see it wait
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer quit(c)

	for _, state := range []reconnect.State{reconnect.StateReady, reconnect.StateWaiting} {
		if err := c.Await(context.Background(), state); err != nil {
			fmt.Println(err)
			return
		}
		s := c.Status()
		fmt.Println(s.State, "session", s.Session, s.Err)
		peer.Fail(io.EOF)
	}
	// Output:
	// ready session 1 <nil>
	// waiting session 1 read: EOF
}

// Shutdown says goodbye to the peer; Close does not. Both leave nothing behind.
func ExampleConn_Shutdown() {
	peer := conntest.NewFake(nil)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Await(context.Background(), reconnect.StateReady); err != nil {
		fmt.Println(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	fmt.Println(c.Shutdown(ctx))

	code, _, _ := peer.ClosedWith()
	fmt.Println("told the peer", code)
	err = c.Write(context.Background(), text("too late"))
	fmt.Println(errors.Is(err, net.ErrClosed), c.State())
	// Output:
	// <nil>
	// told the peer 1000
	// true closed
}

// What a peer is asked when it is silent, where the protocol has no ping of its own:
// in a browser, for instance.
func ExampleLiveness() {
	client, server := conntest.Pair(nil)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return client, nil }),
		&reconnect.Options{Liveness: reconnect.Liveness{
			Limit: 900 * time.Millisecond, // the default is 30 s
			Probe: func(_ context.Context, write func(conn.Message) error) error {
				return write(text("are you there?"))
			},
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer quit(c)

	m, err := server.Read(nil)
	fmt.Println(string(m.Data), err)
	err = server.Write(text("yes"))
	fmt.Println(err)
	answer, err := c.Read(context.Background(), nil)
	fmt.Println(string(answer.Data), err)
	// Output:
	// are you there? <nil>
	// <nil>
	// yes <nil>
}

// How long to wait is a value. This one suits a single trading program: it is
// back soon, and gives up in the end.
func ExampleRunOptions_policy() {
	policy := backoff.First(5*time.Millisecond, // a first wait from [0, 5 ms)
		&backoff.Exponential{Base: 10 * time.Millisecond, Cap: 40 * time.Millisecond}) // then full jitter
	policy = backoff.Limit(policy, 4, time.Minute) // 4 waits, and a minute in all

	dial := func(context.Context) (io.Closer, error) { return nil, errors.New("connection refused") }
	serve := func(context.Context, io.Closer, *reconnect.Session) error { return nil }
	err := reconnect.Run(context.Background(), dial, serve, &reconnect.RunOptions{Policy: policy})
	fmt.Println(err)
	fmt.Println(errors.Is(err, backoff.ErrGaveUp))
	// Output:
	// gave up after 5 tries: connection refused
	// true
}

// What an error means can be said otherwise. This server's code 4003 is for good.
func ExampleRunOptions_classify() {
	peer := conntest.NewFake(nil)
	peer.Fail(&conn.CloseError{Code: 4003, Reason: "banned"})

	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{Run: reconnect.RunOptions{Classify: func(err error) backoff.Verdict {
			var closed *conn.CloseError
			if errors.As(err, &closed) && closed.Code == 4003 {
				return backoff.Verdict{Class: backoff.ClassStop}
			}
			return backoff.Classify(err)
		}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-c.Done()
	fmt.Println(c.Err())
	// Output:
	// closed: read: closed by the peer: 4003 "banned"
}

// Log makes log lines of what happens.
func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { // times are never twice the same
			if k := a.Value.Kind(); k == slog.KindTime || k == slog.KindDuration {
				return slog.Attr{}
			}
			return a
		},
	}))
	dial := func(ctx context.Context) (net.Conn, error) {
		if backoff.TryFrom(ctx).N == 0 {
			return nil, errors.New("connection refused")
		}
		client, _ := net.Pipe()
		return client, nil
	}
	serve := func(_ context.Context, _ net.Conn, s *reconnect.Session) error {
		s.Ready()
		return backoff.Permanent(errors.New("account closed"))
	}
	_ = reconnect.Run(context.Background(), dial, serve, &reconnect.RunOptions{
		Policy: &backoff.Exponential{Base: time.Millisecond},
		Trace:  reconnect.Log(logger),
	})
	// Output:
	// level=INFO msg="waiting to redial" try=1 verdict=retry cause="connection refused"
	// level=INFO msg="session ready" session=1
	// level=INFO msg="session ended" session=1 cause="account closed"
	// level=WARN msg=ended cause="account closed"
}
