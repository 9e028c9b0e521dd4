package conntest

import (
	"context"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

// Handler serves one connection of a [Server]. When it returns, the connection is closed without a
// close frame. ctx is canceled when the server is closed.
type Handler = func(ctx context.Context, c *websocket.Conn, r *http.Request)

// Echo sends every message back until the connection ends.
func Echo(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	for {
		t, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		if err := c.Write(ctx, t, data); err != nil {
			return
		}
	}
}

// Discard reads until the connection ends, which answers pings and the close frame, and sends
// nothing.
func Discard(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	c.SetReadLimit(-1)
	for {
		_, message, err := c.Reader(ctx)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, message); err != nil {
			return
		}
	}
}

// NeverRead does not read, so that pings stay unanswered and a writing client fills its window. It
// returns when the server is closed.
func NeverRead(ctx context.Context, _ *websocket.Conn, _ *http.Request) { <-ctx.Done() }

// CloseWith returns a handler that closes immediately.
func CloseWith(code websocket.StatusCode, reason string) Handler {
	return func(_ context.Context, c *websocket.Conn, _ *http.Request) { c.Close(code, reason) }
}

// Frames returns a handler that sends these frames as they are, not over TLS, and then acts as
// [Discard].
func Frames(frames ...Frame) Handler {
	return func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		for _, f := range frames {
			PipeOf(ctx).Inject(ToClient, f.Bytes())
		}
		Discard(ctx, c, r)
	}
}
