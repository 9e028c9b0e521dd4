package main

import (
	"context"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// outbox refuses no message because OnReceipt, in its own goroutine, is late on a busy
// machine: with the default of 1,024 messages Send would.
var outbox = reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}, Messages: 1 << 20}

// redialClient is a reconnect.Conn, and its reader if it pulls.
type redialClient struct {
	conn   *reconnect.Conn
	queued bool // sends with Send; otherwise with Write
	reader sync.WaitGroup
}

// openRedial opens a Conn; read is nil if the options have OnMessage.
func openRedial(ctx context.Context, t *target, d reconnect.Dialer, o *reconnect.Options, read func(*reconnect.Conn)) (client, error) {
	if t.onUp != nil || t.onDown != nil { // a Trace weighs something
		o.Run.Trace = &reconnect.Trace{
			SessionReady: func(*reconnect.Session) { t.isUp() },
			SessionDone:  func(e reconnect.SessionDone) { t.isDown(e.Cause) },
		}
	}
	if t.wait > 0 {
		o.Run.Policy = &backoff.Exponential{Base: t.wait, Cap: t.wait}
	}
	r, err := reconnect.New(d, o)
	if err != nil {
		return nil, err
	}
	c := &redialClient{conn: r, queued: o.Outbox.OnReceipt != nil}
	if read != nil {
		c.reader.Go(func() { read(r) }) // Close waits for it
	}
	if err := r.AwaitReady(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *redialClient) Send(p []byte) error {
	m := conn.Message{Type: conn.Binary, Data: p}
	if c.queued {
		return c.conn.SendWait(context.Background(), reconnect.Outgoing{Message: m}) // which waits only if it must, as Write does
	}
	return c.conn.Write(context.Background(), m)
}

func (c *redialClient) Close() { _ = c.conn.Close(); <-c.conn.Done(); c.reader.Wait() }
