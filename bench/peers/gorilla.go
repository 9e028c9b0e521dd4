package main

import (
	"context"
	"sync"

	"github.com/gorilla/websocket"
)

// gorilla/websocket alone: it does not redial.
var gorillaPeers = []*peer{{name: "gorilla", protocol: webSocket, open: openGorilla}}

type gorillaClient struct {
	conn   *websocket.Conn
	reader sync.WaitGroup
}

func openGorilla(ctx context.Context, t *target) (client, error) {
	conn, err := dialGorilla(ctx, t)
	if err != nil {
		return nil, err
	}
	c := &gorillaClient{conn: conn}
	c.reader.Go(func() { t.isDown(gorillaLoop(conn, t.onMessage)) }) // Close waits for it
	t.isUp()
	return c, nil
}

// dialGorilla dials with the library's defaults.
func dialGorilla(ctx context.Context, t *target) (*websocket.Conn, error) {
	d := *websocket.DefaultDialer
	d.TLSClientConfig = t.tls
	c, _, err := d.DialContext(ctx, t.url("ws", "wss"), nil)
	return c, err
}

func gorillaLoop(c *websocket.Conn, onMessage func([]byte)) error {
	for {
		_, p, err := c.ReadMessage()
		if err != nil {
			return err
		}
		onMessage(p)
	}
}

func (c *gorillaClient) Send(p []byte) error {
	return c.conn.WriteMessage(websocket.BinaryMessage, p)
}

func (c *gorillaClient) Close() { _ = c.conn.Close(); c.reader.Wait() }
