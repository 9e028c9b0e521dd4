package main

import (
	"context"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// redial by Run alone: the bare loop, in which each session reads its own conn.Conn. It
// has no pings of its own.
var redialRunPeers = []*peer{{name: "redial-run", protocol: webSocket, redials: true, share: shareWebSocket, open: openRun}}

type runClient struct{ looping[conn.Conn] }

func openRun(ctx context.Context, t *target) (client, error) {
	c, first := new(runClient), newFirst()
	own := c.begin()
	var o reconnect.RunOptions
	if t.wait > 0 {
		o.Policy = &backoff.Exponential{Base: t.wait, Cap: t.wait}
	}
	c.reader.Go(func() { // Close waits for it
		first.fail(reconnect.Run(own, dialSession(t), func(_ context.Context, s session, info *reconnect.Session) error {
			c.conn.Store(&s.Conn)
			info.Ready()
			t.isUp()
			first.succeed()
			m, err := s.Read(nil)
			for ; err == nil; m, err = s.Read(m.Data) {
				t.onMessage(m.Data)
			}
			t.isLost(err)
			return err
		}, &o))
	})
	return first.wait(ctx, c)
}

// session is a conn.Conn that Run can close.
type session struct{ conn.Conn }

func (s session) Close() error { return s.CloseNow() }

func dialSession(t *target) func(context.Context) (session, error) {
	d := webSocketDialer(t)
	return func(ctx context.Context) (session, error) {
		c, err := d.Dial(ctx)
		return session{c}, err
	}
}

func (c *runClient) Send(p []byte) error {
	return (*c.conn.Load()).Write(conn.Message{Type: conn.Binary, Data: p})
}
