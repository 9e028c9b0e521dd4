package conn

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/coder/websocket"
)

// WebSocket is a [Conn] over the browser's WebSocket. A program in a browser cannot ping,
// cut, or learn how a connection ended: there is no Ping and no Wire.Transport, Idle
// counts whole messages only, and closing takes as long as the browser does.
type WebSocket struct {
	ws    *websocket.Conn
	wire  *Wire
	limit int64
}

var _ interface {
	Conn
	Idler
} = (*WebSocket)(nil)

// NewWebSocket returns ws as a Conn with the ReadLimit of o, which may be nil.
// From now on ws belongs to it. w may be nil.
func NewWebSocket(ws *websocket.Conn, w *Wire, o *WebSocketOptions) *WebSocket {
	options := o.withDefaults()
	if w == nil {
		w = new(Wire)
	}
	w.noteLife()
	ws.SetReadLimit(options.ReadLimit)
	return &WebSocket{ws: ws, wire: w, limit: options.ReadLimit}
}

// Read implements [Conn]. Only one goroutine may read.
func (c *WebSocket) Read(buf []byte) (Message, error) {
	if cause := c.wire.ended(); cause != nil {
		return Message{}, &lostError{"read", cause}
	}
	kind, data, err := c.ws.Read(context.Background())
	if err != nil {
		return Message{}, &lostError{"read", c.wire.end(c.reason(err))}
	}
	c.wire.noteLife()
	return Message{Type: Type(kind), Data: append(buf[:0], data...)}, nil
}

func (c *WebSocket) reason(err error) error {
	var frame websocket.CloseError
	switch {
	case errors.As(err, &frame):
		return &CloseError{Code: int(frame.Code), Reason: frame.Reason}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return &TooBigError{Limit: c.limit}
	case errors.Is(err, net.ErrClosed):
		return errEnded
	}
	return err
}

// Write implements [Conn]. It never waits.
func (c *WebSocket) Write(m Message) error {
	if cause := c.wire.ended(); cause != nil {
		return notWritten(cause)
	}
	if err := checkType(m); err != nil {
		return err
	}
	if err := c.ws.Write(context.Background(), websocket.MessageType(m.Type), m.Data); err != nil {
		return &lostError{"write", err}
	}
	return nil
}

// Idle implements [Idler].
func (c *WebSocket) Idle() time.Duration {
	return clock() - time.Duration(c.wire.heard.Load())
}

// Subprotocol returns the subprotocol that was agreed on, "" if none was.
func (c *WebSocket) Subprotocol() string { return c.ws.Subprotocol() }

// Close implements [Conn], except that a browser goes on closing by itself when
// ctx ends. It takes no codes but 1000 and 3000 to 4999.
func (c *WebSocket) Close(ctx context.Context, code int, reason string) error {
	err := checkCode(code)
	if err != nil {
		code, reason = 1000, ""
	}
	c.wire.end(net.ErrClosed)
	closed := make(chan error, 1)
	go func() { closed <- c.ws.Close(websocket.StatusCode(code), cutReason(reason)) }()
	select {
	case failed := <-closed:
		err = errors.Join(err, failed)
	case <-ctx.Done(): // the browser ends it, and the goroutine
		err = errors.Join(err, context.Cause(ctx))
	}
	if err != nil {
		return &lostError{"close", err}
	}
	return nil
}

// CloseNow implements [Conn]. The error is always nil.
func (c *WebSocket) CloseNow() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ctx, 1000, "")
	return nil
}
