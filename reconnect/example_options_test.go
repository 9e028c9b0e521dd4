package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// OnMessage handles each message in the goroutine that reads the connection (push), and
// OnSeam each seam.
func ExampleOptions_onMessage() {
	dials := 0
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		if dials++; dials > 2 {
			return nil, backoff.Permanent(errors.New("no third session in this example"))
		}
		peer := conntest.NewFake(nil)
		peer.Deliver(conn.TextMessage("snapshot"))
		peer.Fail(io.EOF) // after it
		return peer, nil
	})
	c, err := reconnect.New(dial, &reconnect.Options{
		OnMessage: func(_ context.Context, m reconnect.Message) { // m.Data is valid until this returns
			fmt.Printf("session %d: %s\n", m.Session, m.Data)
		},
		OnSeam: func(_ context.Context, s *reconnect.Seam) { fmt.Println("forget session", s.Session) },
		Run:    reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-c.Done()
	fmt.Println(c.Err())
	// Output:
	// session 1: snapshot
	// forget session 1
	// session 2: snapshot
	// forget session 2
	// ended for good: no third session in this example
}

// OnSession logs in on each new connection. A message that comes before the answer is part
// of the feed, so that it is handed on.
func ExampleOptions_onSession() {
	peer := conntest.NewFake(nil)
	peer.Deliver(conn.TextMessage("price 42"), conn.TextMessage("welcome"), conn.TextMessage("price 43"))

	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if err := o.Write(conn.TextMessage("login")); err != nil {
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
	defer c.Close()

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

// Probe asks a silent peer for a sign of life where the protocol has no ping of its own,
// such as lines over TCP, or a WebSocket in a browser.
func ExampleLiveness() {
	client, server := conntest.Pair(nil)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return client, nil }),
		&reconnect.Options{Liveness: reconnect.Liveness{
			Limit: 900 * time.Millisecond, // the default is 30 s
			Probe: func(_ context.Context, write func(conn.Message) error) error {
				return write(conn.TextMessage("are you there?"))
			},
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	m, err := server.Read(nil)
	fmt.Println(string(m.Data), err)
	err = server.Write(conn.TextMessage("yes"))
	fmt.Println(err)
	answer, err := c.Read(context.Background(), nil)
	fmt.Println(string(answer.Data), err)
	// Output:
	// are you there? <nil>
	// <nil>
	// yes <nil>
}

// A reader that is too slow loses the oldest messages here, and a seam stands in their
// place. By default the peer is not read while the inbox is full.
func ExampleInbox() {
	peer := conntest.NewFake(nil)
	for i := range 5 {
		peer.Deliver(conn.TextMessage(fmt.Sprint("price ", i)))
	}
	peer.Fail(io.EOF) // after these five
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{
			Inbox: reconnect.Inbox{Messages: 2, Overflow: reconnect.InboxDropOldest},
			Run:   reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterEqual}}, // no second session in this example
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx := context.Background()
	if err := c.Await(ctx, reconnect.StateWaiting); err != nil { // all five have come by then
		fmt.Println(err)
		return
	}
	for range 4 {
		m, err := c.Read(ctx, nil)
		if seam, missing := errors.AsType[*reconnect.Seam](err); missing {
			fmt.Println("dropped", seam.Dropped, "lost", seam.Lost)
			continue
		}
		fmt.Println(string(m.Data), err)
	}
	// Output:
	// dropped 3 lost 0
	// price 3 <nil>
	// price 4 <nil>
	// dropped 0 lost 1
}

// Of two orders with the same key only the newer is of interest, so that it takes the
// place of the older one that waits to be sent.
func ExampleOutbox() {
	up := make(chan struct{})
	c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
		select {
		case <-up:
			return conntest.NewFake(nil), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}), &reconnect.Options{
		WhenDown: reconnect.WhenDownKeep,
		Outbox: reconnect.Outbox{
			Messages: 100,         // default: 1024
			Age:      time.Minute, // default: 5 min
			Overflow: reconnect.OutboxReplaceKey,
			OnReceipt: func(_ context.Context, r reconnect.Receipt) {
				fmt.Printf("%s: %v %v\n", r.Outgoing.Data, r.Fate, r.Err)
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, price := range []string{"bid 41", "bid 42"} {
		if err := c.Send(reconnect.Outgoing{Message: conn.TextMessage(price), Key: "bid"}); err != nil {
			fmt.Println("not accepted:", err)
		}
	}
	close(up)
	fmt.Println(c.Shutdown(context.Background()))
	// Output:
	// bid 41: dropped replaced by a newer message with the same key
	// bid 42: written <nil>
	// <nil>
}

// A feed that sends nothing is given up, although its peer may answer every ping.
func ExampleStall() {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return conntest.NewFake(nil), nil })
	c, err := reconnect.New(dial, &reconnect.Options{
		Stall: reconnect.Stall{
			Limit:    10 * time.Millisecond,                                            // a real feed may be silent for a minute
			Expected: func(at time.Time) bool { return at.Weekday() <= time.Saturday }, // always; a market has its hours
		},
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = c.Read(context.Background(), nil)
	fmt.Println(err)
	// Output: session 1 ended: no data
}
