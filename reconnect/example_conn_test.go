package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The program asks for each message (pull), and gets it in a buffer of its own.
func ExampleConn_Read() {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		peer := conntest.NewFake(nil)
		peer.Deliver(conn.TextMessage("snapshot"), conn.TextMessage("update"))
		peer.Fail(io.EOF) // after these two
		return peer, nil
	})
	c, err := reconnect.New(dial, &reconnect.Options{
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	buf := make([]byte, 0, 1024)
	for range 4 {
		m, err := c.Read(context.Background(), buf)
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
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
	defer c.Close()
	ctx := context.Background()

	fmt.Println(c.Write(ctx, conn.TextMessage("too early")))

	close(up)
	if err := c.Await(ctx, reconnect.StateReady); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Write(ctx, conn.TextMessage("in time")))

	peer.FailWrite(errors.New("connection reset"))
	err = c.Write(ctx, conn.TextMessage("buy 100"))
	if failed, ok := errors.AsType[*reconnect.WriteError](err); ok {
		fmt.Println(failed.Fate) // ask the server before you send it again
	}
	// Output:
	// message dropped: no session is ready (connecting)
	// <nil>
	// unknown
}

// With WhenDownKeep the outbox keeps what is sent before there is a session, and Shutdown
// sends it before it ends. OnReceipt gets what became of each message.
func ExampleConn_Send() {
	chat, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		return conntest.NewFake(nil), nil
	}), &reconnect.Options{
		WhenDown: reconnect.WhenDownKeep,
		Outbox: reconnect.Outbox{OnReceipt: func(_ context.Context, r reconnect.Receipt) {
			fmt.Printf("%v: %v by session %d\n", r.Outgoing.Tag, r.Fate, r.Session)
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, line := range []string{"hello", "anybody there?"} {
		out := reconnect.Outgoing{Message: conn.TextMessage(line), Tag: fmt.Sprint("line ", i+1)}
		if err := chat.Send(out); err != nil {
			fmt.Println("not accepted:", err)
		}
	}
	if err := chat.Shutdown(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// line 1: written by session 1
	// line 2: written by session 1
}

// Await waits for a state, and Status returns the newest one and why it is that.
func ExampleConn_Await() {
	peer := conntest.NewFake(nil)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{Run: reconnect.RunOptions{
			Policy: &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterEqual}, // so that the example sees it wait
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

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

// Shutdown closes the connection politely, and Close cuts it. After either of them nothing
// is left once Done is closed.
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
	fmt.Println("close code", code)
	err = c.Write(context.Background(), conn.TextMessage("too late"))
	fmt.Println(errors.Is(err, net.ErrClosed), c.State())
	// Output:
	// <nil>
	// close code 1000
	// true closed
}
