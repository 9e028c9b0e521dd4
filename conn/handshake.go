//go:build !js

package conn

import (
	"io"
	"net/http"
)

// Transport returns rt with a body of its own for a 101 response: above TLS, so that a
// [WebSocket] can take the connection over from coder/websocket after the handshake. Other
// responses pass unchanged. A nil rt is [http.DefaultTransport].
func (w *Wire) Transport(rt http.RoundTripper) http.RoundTripper {
	if rt == nil {
		rt = http.DefaultTransport
	}
	return &transport{wire: w, next: rt}
}

type transport struct {
	wire *Wire
	next http.RoundTripper
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if body, ok := resp.Body.(io.ReadWriteCloser); ok {
		s := newStream(t.wire, body)
		s.inflate = agreed(r.Header, resp.Header)
		t.wire.stream, resp.Body = s, &s.shell
	}
	return resp, nil
}
