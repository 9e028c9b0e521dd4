//go:build !js

package dialer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// attempt makes one attempt at the handshake r. A foreign host is none of the endpoints: see
// [WebSocket.FollowHint].
func (d *WebSocket) attempt(ctx context.Context, r *request, foreign bool) (conn.Conn, *Error) {
	return d.endpoints.attempt(ctx, &attempt{
		request: r, foreign: foreign,
		connect: func(ctx context.Context, w *conn.Wire) (net.Conn, error) { return d.connect(ctx, w, r) },
		open: func(ctx context.Context, w *conn.Wire, nc net.Conn) (conn.Conn, error) {
			return d.upgrade(ctx, w, nc, r)
		},
	})
}

// upgrade makes the handshake of RFC 6455, section 4.1, over nc.
func (d *WebSocket) upgrade(ctx context.Context, w *conn.Wire, nc net.Conn, r *request) (conn.Conn, error) {
	u := &upgrader{nc: nc}
	ws, _, err := websocket.Dial(ctx, r.url.String(), &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: w.Transport(u)},
		HTTPHeader:      r.header,
		Host:            r.header.Get("Host"),
		Subprotocols:    d.Subprotocols,
		CompressionMode: d.Compression,
	})
	switch {
	case err == nil:
		u.body.open = true
		if accepted := backoff.AttemptFrom(ctx).Accepted; accepted != nil {
			accepted(u.resp.Header)
		}
		return conn.NewWebSocket(ws, w, d.connOptions(r))
	case u.body != nil: // a 101 that is wrong
		return nil, d.wrong101(u.resp, err, r.secrets)
	case u.resp != nil:
		return nil, refusal(r, u.resp, u.behind)
	}
	return nil, err
}

// wrong101 returns the error for a 101 that is wrong. Package conn judges the extensions in it, coder/websocket the
// rest.
func (d *WebSocket) wrong101(resp *http.Response, err error, s *secrets) *answerError {
	if extension, ok := errors.AsType[*conn.ProtocolError](err); ok {
		text := s.print(extension.Error())
		if d.Compression != websocket.CompressionDisabled {
			text += "; to do without compression set WebSocket.Compression to websocket.CompressionDisabled"
		}
		return newAnswerError(resp, text)
	}
	text, _, _ := strings.Cut(err.Error(), ", key ") // our key is different in each handshake
	return newAnswerError(resp, s.print(strings.TrimPrefix(text, "failed to WebSocket dial: ")))
}

// upgrader is the http.RoundTripper under coder/websocket. It makes one request, over a
// connection that exists already. A refusal is an error at once, because coder/websocket would read
// its body for up to 3 s, and net/http would follow a redirect.
type upgrader struct {
	nc     net.Conn
	resp   *http.Response // the answer; nil: there was none
	behind []byte         // the data that came together with its header
	body   *body          // of a 101
}

func (u *upgrader) RoundTrip(r *http.Request) (*http.Response, error) {
	unsent := writeRequest(u.nc, r)
	resp, behind, err := readAnswer(u.nc, r) // a server may answer before it has read everything
	if err != nil {
		return nil, cmp.Or(unsent, err)
	}
	u.resp, u.behind = resp, behind
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, errRefused
	}
	u.body = &body{Conn: u.nc, r: u.nc}
	if len(behind) > 0 {
		u.body.r = io.MultiReader(bytes.NewReader(behind), u.nc)
	}
	resp.Body = u.body
	return resp, nil
}

var errRefused = errors.New("refused")

// body is the connection behind a 101. It is empty until the handshake has been checked, because
// coder/websocket would read the body of a wrong one for up to 3 s.
type body struct {
	net.Conn
	r    io.Reader // the bytes that came together with the header, and then the connection
	open bool
}

func (b *body) Read(p []byte) (int, error) {
	if !b.open {
		return 0, io.EOF
	}
	return b.r.Read(p)
}
