package main

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gorilla/websocket"
)

// A loop around gorilla/websocket with the settings of recws-org/recws, which the module
// proxy does not have: waits of 2 s, growing by half up to 30 s, with jitter; 2 s for a
// handshake; no keep-alive; the reader gets the error of a loss.
var recwsPeers = []*peer{{name: "recws", protocol: webSocket, redials: true, open: openRecws}}

type recwsClient struct{ looping[websocket.Conn] }

func openRecws(ctx context.Context, t *target) (client, error) {
	c, first := new(recwsClient), newFirst()
	own := c.begin()
	c.reader.Go(func() { // Close waits for it
		for fails := 0; own.Err() == nil; {
			handshake, cancel := context.WithTimeout(own, 2*time.Second)
			conn, err := dialGorilla(handshake, t)
			cancel()
			if err != nil {
				pause(own, recwsWait(t, fails))
				fails++
				continue
			}
			fails = 0 // after a loss it dials at once
			c.conn.Store(conn)
			t.isUp()
			first.succeed()
			stop := context.AfterFunc(own, func() { _ = conn.Close() })
			err = gorillaLoop(conn, t.onMessage)
			stop()
			_ = conn.Close()
			t.isLost(err)
		}
	})
	return first.wait(ctx, c)
}

func recwsWait(t *target, n int) time.Duration {
	if t.wait > 0 {
		return t.wait
	}
	d := min(2*math.Pow(1.5, float64(n)), 30) // seconds
	return time.Duration((2 + rand.Float64()*(d-2)) * float64(time.Second))
}

func (c *recwsClient) Send(p []byte) error {
	return c.conn.Load().WriteMessage(websocket.BinaryMessage, p)
}
