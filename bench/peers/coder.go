package main

import (
	"context"
	"sync"

	"github.com/coder/websocket"
)

// coder/websocket alone: it does not redial. Its default http.Client is shared by all.
var coderPeers = []*peer{
	{name: "coder", protocol: webSocket, takeover: true, open: openCoder(coderRead)},
	{name: "coder-reader", protocol: webSocket, open: openCoder(coderReader)},
	{name: "coder-context", protocol: webSocket, open: openCoder(func(c *websocket.Conn, t *target) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		return coderLoop(ctx, c, t.onMessage)
	})},
	{name: "coder-channel", protocol: webSocket, open: openCoder(func(c *websocket.Conn, t *target) error {
		messages := make(chan []byte, 64) // as many as redial's inbox holds
		var reader sync.WaitGroup
		defer reader.Wait()
		defer close(messages)
		reader.Go(func() {
			for p := range messages {
				t.onMessage(p)
			}
		})
		return coderLoop(context.Background(), c, func(p []byte) { messages <- p })
	})},
}

// coderClient is a connection whose reader is a goroutine.
type coderClient struct {
	conn   *websocket.Conn
	reader sync.WaitGroup
}

func openCoder(read func(*websocket.Conn, *target) error) func(context.Context, *target) (client, error) {
	return func(ctx context.Context, t *target) (client, error) {
		conn, err := dialCoder(ctx, t)
		if err != nil {
			return nil, err
		}
		c := &coderClient{conn: conn}
		c.reader.Go(func() { t.isDown(read(conn, t)) }) // Close waits for it
		t.isUp()
		return c, nil
	}
}

func (c *coderClient) Send(p []byte) error {
	return c.conn.Write(context.Background(), websocket.MessageBinary, p)
}

func (c *coderClient) Close() { _ = c.conn.CloseNow(); c.reader.Wait() }
