//go:build !js

package conn

import (
	"io"
	"net/http"
)

// Transport returns rt with the Wire's own stream in place of the body of a 101 response,
// above TLS. So a [WebSocket] reads messages itself, knows how the connection ended, and
// sends the frames of coder/websocket, which never waits for the network. Other responses
// pass unchanged. A nil rt is [http.DefaultTransport].
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
		s.inflate = agreed(resp.Header.Values("Sec-Websocket-Extensions"))
		t.wire.stream, resp.Body = s, s
	}
	return resp, nil
}
