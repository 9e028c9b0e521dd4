//go:build !js

package conn

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/coder/websocket"
)

// WebSocket is a [Conn] whose opening handshake coder/websocket has made. Frames, control frames
// (RFC 6455) and compression (RFC 7692) are its own.
type WebSocket struct {
	wired
	subprotocol string
	limit       int
	checkUTF8   bool
	redact      func(reason string) string // or nil
}

var _ interface {
	Conn
	Pinger
	CloseStarter
	Transport
} = (*WebSocket)(nil)

// NewWebSocket returns the connection of ws as a Conn, under the limits of o. ws must have been
// dialed through Tap and Transport of w. It is closed to free its memory: its callbacks
// OnPingReceived and OnPongReceived are no longer called, and its CompressionThreshold has no
// effect. An error reports that w is not the Wire of ws, or names the invalid option, and leaves ws
// alone.
//
// Read answers pings and close frames. No reply waits for a Write, and none makes Read wait.
func NewWebSocket(ws *websocket.Conn, w *Wire, o *WebSocketOptions) (*WebSocket, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if w == nil || w.stream == nil || w.tap.Load() == nil {
		return nil, errors.New("conn: the WebSocket was not dialed through Tap and Transport of the Wire")
	}
	c := &WebSocket{
		wired: wired{w}, subprotocol: ws.Subprotocol(), limit: int(options.ReadLimit), checkUTF8: options.CheckUTF8,
		redact: options.Redact,
	}
	w.join(c, options.Limits)
	w.stream.shell.detached = true
	_ = ws.CloseNow()
	return c, nil
}

// BeforeBlock implements [Transport].
func (c *WebSocket) BeforeBlock(f func()) bool {
	c.wire.stream.beforeBlock = f
	return true
}

// Subprotocol returns the subprotocol that both sides have agreed on, or "".
func (c *WebSocket) Subprotocol() string { return c.subprotocol }

// StartClose implements [CloseStarter] (RFC 6455, section 7.1.2). It waits at most 5 s for the
// message in progress, and 5 s until the kernel has taken the close frame. For the reason and the
// code see Close. Once the peer's close frame has been received, a failure to send ours is not an
// error.
func (c *WebSocket) StartClose(code int, reason string) error {
	err := checkCode(code)
	if err == nil {
		c.wire.leaving.Store(true)
		if err = c.sendClose(code, reason); c.wire.goodbye.Load() != nil {
			return nil // the reader may have closed the connection, after the peer's close frame
		}
	}
	if err != nil {
		_ = c.CloseNow()
		return &lostError{"close", err}
	}
	return nil
}

// sendClose sends a close frame, unless one was sent (RFC 6455, section 5.5.1), and waits until the
// kernel has taken it.
func (c *WebSocket) sendClose(code int, reason string) error {
	out := &c.wire.stream.out
	if err := out.awaitMessage(); err != nil {
		return err
	}
	if err := out.control(opClose, closePayload(code, reason)); err != nil && !c.wire.closeSent.Load() {
		return err
	}
	out.settle(closeLimit)
	return out.failure()
}

// Close implements [Conn]. A nil error means that the peer has replied. Close waits at most 5 s for
// the message in progress, 5 s until the close frame is written and 5 s for the reply. If ctx is
// already done, Close is CloseNow. The reason is truncated to 123 bytes. A code that may not be
// sent (RFC 6455, section 7.4) is an error, but the connection is closed too. Messages that arrive
// before the reply are discarded, except for one that a Read is receiving.
func (c *WebSocket) Close(ctx context.Context, code int, reason string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return c.wire.close(ctx, checkCode(code), func(ctx context.Context) error {
		err := c.sendClose(code, reason)
		if err == nil {
			late := time.AfterFunc(closeLimit, func() { cancel(errNoAnswer) })
			defer late.Stop()
			err = c.wire.reads.claim(ctx)
		}
		if err == nil {
			err = c.awaitGoodbye()
		}
		if err == nil || c.wire.goodbye.Load() != nil { // else the answer came to Read
			return nil
		}
		return c.wire.stream.cause(err)
	})
}

// awaitGoodbye waits for the peer's close frame, for Close (RFC 6455, section 5.5.1). It discards all
// other frames, also those that break the rules, unless it cannot know where they end.
func (c *WebSocket) awaitGoodbye() error {
	s := c.wire.stream
	s.by = byClose
	size := uint64(s.left)
	s.left = 0
	for c.wire.goodbye.Load() == nil {
		if err := s.skip(size); err != nil {
			return err
		}
		h, err := s.header(nil)
		switch op := h.opcode(); {
		case err != nil:
			return err
		case h.length < 0:
			return &ProtocolError{Err: errHugeLength}
		case op > opBinary && op < opClose || op > opPong:
			return &ProtocolError{Err: errOpcode}
		case op == opClose && !h.isControl():
			return &ProtocolError{Err: errControlFrame}
		case op == opClose:
			payload, err := s.await(h)
			if err == nil {
				_, err = c.parseClose(payload)
			}
			return err
		}
		size = uint64(h.head()) + uint64(h.length)
	}
	return nil
}

// CloseNow implements [Conn]. The error is always nil.
func (c *WebSocket) CloseNow() error {
	c.wire.closeNow()
	c.wire.stream.out.rest()
	return nil
}

func (c *WebSocket) abort() {
	c.wire.stream.out.stop(net.ErrClosed)
	_ = c.wire.stream.body.Close()
}

// why returns the best known cause of a failure of another method than Read.
func (c *WebSocket) why(err error) error {
	if cause := c.wire.ended(); cause != nil {
		return cause
	}
	if frame := c.wire.goodbye.Load(); frame != nil {
		return frame
	}
	if broken := c.wire.stream.out.failure(); broken != nil && !errors.Is(broken, net.ErrClosed) {
		return broken
	}
	if errors.Is(err, net.ErrClosed) && !c.wire.leaving.Load() {
		return errEnded
	}
	return err
}
