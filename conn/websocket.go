//go:build !js

package conn

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/coder/websocket"
)

// WebSocket is a [Conn] over coder/websocket. See the package documentation for
// what it guarantees.
type WebSocket struct {
	ws        *websocket.Conn
	wire      *Wire
	limit     int
	checkUTF8 bool
}

var _ interface {
	Conn
	Pinger
	Transport
} = (*WebSocket)(nil)

// NewWebSocket returns ws as a Conn, under the limits of o, which may be nil. From
// now on ws belongs to it: do not read, write or close ws any more. ws must have been made
// without OnPingReceived and OnPongReceived callbacks that use it. An option that
// [WebSocketOptions.Validate] refuses gets its default.
//
// w is the Wire that ws was dialed through. Without one, or with one that was
// not used, the WebSocket works, but:
//   - closing may wait for the network: CloseNow for 5 s under TLS, Close for 10 s
//     even if its context ends;
//   - only whole messages count as signs of life;
//   - a message that the peer cut short may be taken for whole, if it was
//     compressed or fragmented (coder/websocket v1.8.15 returns no error);
//   - a compressed message with a final block (RFC 7692, section 7.2.3.4) may spoil the
//     next one;
//   - a frame whose length has its first bit set ends the connection without a close frame;
//   - CheckUTF8 does not check the reason of a close frame, and a Read that refuses a text
//     waits for the peer's close frame, for 10 s at most;
//   - a write that takes longer than 5 s while the peer pings ends the connection,
//     whatever WriteTimeout is;
//   - the fate of a failed write is unknown even where nothing was written.
func NewWebSocket(ws *websocket.Conn, w *Wire, o *WebSocketOptions) *WebSocket {
	options := o.withDefaults()
	if w == nil {
		w = new(Wire)
	}
	w.setLimits(options.Limits)
	if w.tap.Load() == nil {
		w.noteLife()
	}
	w.ws = ws
	ws.SetReadLimit(options.ReadLimit)
	return &WebSocket{ws: ws, wire: w, limit: int(options.ReadLimit), checkUTF8: options.CheckUTF8}
}

// Silence implements [Transport].
func (c *WebSocket) Silence() time.Duration {
	return clock() - time.Duration(c.wire.heard.Load())
}

// HungUp implements [Transport].
func (c *WebSocket) HungUp() bool { return c.wire.hungUp() }

// BeforeBlock implements [Transport]. Without a Wire it does nothing and reports false.
func (c *WebSocket) BeforeBlock(f func()) bool {
	if c.wire.stream == nil {
		return false
	}
	c.wire.stream.beforeBlock = f
	return true
}

// LocalAddr implements [Transport].
func (c *WebSocket) LocalAddr() net.Addr { return c.wire.localAddr() }

// Subprotocol returns the subprotocol that was agreed on, or "".
func (c *WebSocket) Subprotocol() string { return c.ws.Subprotocol() }

// Close implements [Conn]. A nil error means that the peer has answered. It waits
// until ctx ends, but for 5 s at most for the close frame to be written and 5 s
// for the answer. If ctx has ended it is CloseNow.
//
// The reason is cut to 123 bytes. A code that may not be sent (RFC 6455, section
// 7.4) is an error; the connection is cut all the same.
func (c *WebSocket) Close(ctx context.Context, code int, reason string) error {
	err := checkCode(code)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err = c.wire.beginClose(err); err != nil {
		_ = c.CloseNow()
		return &lostError{"close", err}
	}

	defer c.wire.reads.done()

	ctx, cancel := context.WithTimeoutCause(ctx, 2*closeLimit, errNoAnswer)
	defer cancel()
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { c.wire.Cut(); close(cut) })
	c.wire.reads.awaitLent()
	if err = c.wire.stream.awaitMessage(); err == nil {
		err = c.ws.Close(websocket.StatusCode(code), cutReason(reason))
	}
	if !stop() {
		<-cut
		err = context.Cause(ctx)
	} else {
		err = c.unanswered(err)
	}
	_ = c.CloseNow()
	if err != nil {
		return &lostError{"close", err}
	}
	return nil
}

// unanswered returns why the peer did not answer our close frame, or nil if it did. err is
// that of coder/websocket, for which our own cut is a success.
func (c *WebSocket) unanswered(err error) error {
	var answer websocket.CloseError
	end := c.wire.stream.ended()
	switch {
	case errors.As(err, &answer), c.wire.closeReceived.Load(): // with another code, or to Read
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
	c.wire.closing.Store(true)
	c.wire.end(net.ErrClosed)
	c.wire.Cut() // first: ws.CloseNow cuts nothing once a Close has begun
	c.wire.abort()
	c.wire.stream.rest()
	c.wire.writing.stop()
	c.wire.message.stop()
	return nil
}

// why returns the best known cause of a failure of another method than Read.
func (c *WebSocket) why(err error) error {
	if cause := c.wire.ended(); cause != nil {
		return cause
	}
	if broken := c.wire.stream.unsent(); broken != nil && !closedBelow(broken) {
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
