package dialer

import (
	"context"
	"errors"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
)

// open makes one try at t. In a browser there is one limit, the sum of both, and
// no header; options of TLS, TCP, proxy and compression are the browser's.
func (d *WebSocket) open(parent context.Context, t *target, l limits) (conn.Conn, *Error) {
	if len(t.header) > 0 {
		return nil, &Error{Endpoint: redacted(t.url), Err: errors.New("a browser cannot send a header with the handshake")}
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	s := stages{limits: limits{connect: l.patience()}, end: cancel}
	s.connecting()
	defer s.stop()
	ws, _, err := websocket.Dial(ctx, t.url.String(), &websocket.DialOptions{Subprotocols: d.Subprotocols})
	if err != nil {
		return nil, failure(parent, t.url, nil, context.Cause(ctx), err, false)
	}
	return conn.NewWebSocket(ws, new(conn.Wire), &d.Conn), nil
}
