package dialer

import (
	"context"
	"errors"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// attempt makes one attempt at the handshake r. In a browser there is one limit, the
// sum of both, and no header; TLS, TCP, proxy and compression are the browser's.
func (d *WebSocket) attempt(parent context.Context, r *request, _ bool) (conn.Conn, *Error) {
	if len(r.header) > 0 {
		return nil, &Error{Endpoint: r.endpoint(), Err: errors.New("a browser cannot send a header with the handshake")}
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	defer endAfter(cancel, d.endpoints.dialTimeout(backoff.AttemptFrom(parent)), "not connected")()
	ws, err := conn.OpenWebSocket(ctx, r.url.String(), d.Subprotocols, d.connOptions(r))
	if err != nil {
		return nil, failure(r, context.Cause(ctx), err)
	}
	return ws, nil
}
