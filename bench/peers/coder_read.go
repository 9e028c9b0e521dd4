package main

import (
	"bytes"
	"context"

	"github.com/coder/websocket"
)

// dialCoder dials with the library's defaults; under TLS with the program's HTTP client.
func dialCoder(ctx context.Context, t *target) (*websocket.Conn, error) {
	o := &websocket.DialOptions{HTTPClient: t.http}
	if t.takeover {
		o.CompressionMode = websocket.CompressionContextTakeover
	}
	c, _, err := websocket.Dial(ctx, t.url("ws", "wss"), o)
	return c, err
}

// coderRead reads with Read and a context that never ends.
func coderRead(c *websocket.Conn, t *target) error {
	return coderLoop(context.Background(), c, t.onMessage)
}

func coderLoop(ctx context.Context, c *websocket.Conn, onMessage func([]byte)) error {
	for {
		_, p, err := c.Read(ctx)
		if err != nil {
			return err
		}
		onMessage(p)
	}
}

// coderReader reads with Reader into a buffer that is used again.
func coderReader(c *websocket.Conn, t *target) error {
	var buf bytes.Buffer
	for {
		_, r, err := c.Reader(context.Background())
		if err != nil {
			return err
		}
		buf.Reset()
		if _, err := buf.ReadFrom(r); err != nil {
			return err
		}
		t.onMessage(buf.Bytes())
	}
}
