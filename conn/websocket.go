//go:build !js

package conn

import (
	"context"
	"errors"
	"net"

	"github.com/coder/websocket"
)

// WebSocket is a [Conn] over coder/websocket. The package documentation has its guarantees.
type WebSocket struct {
	wired
	ws        *websocket.Conn
	limit     int
	checkUTF8 bool
}

var _ interface {
	Conn
	Pinger
	Transport
} = (*WebSocket)(nil)

// NewWebSocket returns ws as a Conn, under the limits of o, which may be nil. ws must have
// been dialed through Tap and Transport of w, without OnPingReceived and OnPongReceived
// callbacks that use ws. From now on ws belongs to the WebSocket: do not read, write or close
// it any more. An error says that w is not the Wire of ws, or names the option that is wrong,
// and leaves ws alone.
func NewWebSocket(ws *websocket.Conn, w *Wire, o *WebSocketOptions) (*WebSocket, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if w == nil || w.stream == nil || w.tap.Load() == nil {
		return nil, errors.New("conn: the WebSocket was not dialed through Tap and Transport of the Wire")
	}
	c := &WebSocket{wired: wired{w}, ws: ws, limit: int(options.ReadLimit), checkUTF8: options.CheckUTF8}
	w.join(c, options.Limits)
	return c, nil
}

// BeforeBlock implements [Transport].
func (c *WebSocket) BeforeBlock(f func()) bool {
	c.wire.stream.beforeBlock = f
	return true
}

// Subprotocol returns the subprotocol that both sides have agreed on, or "".
func (c *WebSocket) Subprotocol() string { return c.ws.Subprotocol() }

// Close implements [Conn]. A nil error means that the peer has answered. Close waits until
// ctx ends, for at most 5 s until the close frame is written and 5 s for the answer. If ctx
// has ended, Close is CloseNow. The reason is cut to 123 bytes. A code that may not be sent
// (RFC 6455, section 7.4) is an error; the connection is cut all the same.
func (c *WebSocket) Close(ctx context.Context, code int, reason string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*closeLimit, errNoAnswer)
	defer cancel()
	return c.wire.close(ctx, checkCode(code), func() error {
		c.wire.reads.awaitLent()
		err := c.wire.stream.out.awaitMessage()
		if err == nil {
			err = c.ws.Close(websocket.StatusCode(code), cutReason(reason))
		}
		return c.unanswered(err)
	})
}

// unanswered returns why the peer did not answer our close frame, or nil if it did. err is
// that of coder/websocket, for which our own cut is a success.
func (c *WebSocket) unanswered(err error) error {
	end := c.wire.stream.ended()
	switch {
	case errors.As(err, new(websocket.CloseError)), c.wire.closeReceived.Load(): // with another code, or to Read
		return nil
	case c.wire.cut.Load():
		return net.ErrClosed
	case errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer
	case err != nil && end != nil && !errors.Is(end, net.ErrClosed):
		return end
	}
	return err
}

// CloseNow implements [Conn]. The error is always nil.
func (c *WebSocket) CloseNow() error {
	c.wire.closeNow()
	c.wire.stream.out.rest()
	return nil
}

func (c *WebSocket) abort() {
	c.wire.stream.out.stop(net.ErrClosed)
	_ = c.ws.CloseNow()
}

// why returns the best known cause of a failure of another method than Read.
func (c *WebSocket) why(err error) error {
	if cause := c.wire.ended(); cause != nil {
		return cause
	}
	if broken := c.wire.stream.out.failure(); broken != nil && !closedBelow(broken) {
		return broken
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errControl
	case closedBelow(err):
		return errEnded
	}
	return err
}

// closedBelow reports whether the connection was closed, or coder/websocket has given up. A
// deadline in its errors is that of a control frame, never one of ours.
func closedBelow(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded)
}

func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
