package main

import (
	"context"

	"github.com/cenkalti/backoff/v5"
	"github.com/coder/websocket"
)

// A loop around coder/websocket, as it is written by hand, with the waits of
// cenkalti/backoff; the second has a ping every 30 s that is answered within 10.
var loopPeers = []*peer{
	{name: "loop", protocol: webSocket, redials: true, open: func(ctx context.Context, t *target) (client, error) { return openLoop(ctx, t, false) }},
	{name: "loop-ping", protocol: webSocket, redials: true, open: func(ctx context.Context, t *target) (client, error) { return openLoop(ctx, t, true) }},
}

type loopClient struct{ looping[websocket.Conn] }

func openLoop(ctx context.Context, t *target, ping bool) (client, error) {
	c, first := new(loopClient), newFirst()
	own := c.begin()
	c.reader.Go(func() { // Close waits for it
		policy := backoff.NewExponentialBackOff()
		if t.wait > 0 {
			policy.InitialInterval, policy.MaxInterval = t.wait, t.wait
		}
		for ; own.Err() == nil; pause(own, policy.NextBackOff()) {
			conn, err := dialCoder(own, t)
			if err != nil {
				continue
			}
			policy.Reset()
			c.conn.Store(conn)
			t.isUp()
			first.succeed()
			t.isLost(c.session(own, t, ping))
		}
	})
	return first.wait(ctx, c)
}

func (c *loopClient) Send(p []byte) error {
	return c.conn.Load().Write(context.Background(), websocket.MessageBinary, p)
}
