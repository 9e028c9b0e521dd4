//go:build !js

package conn

import (
	"io"
	"net/http"
)

// Transport returns rt with a body of its own for a 101 response, so that a WebSocket can take the
// connection over. It negotiates compression from the offer in the request: the returned response
// has no Sec-WebSocket-Extensions. Other responses pass unchanged. A nil rt is
// [http.DefaultTransport].
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
	body, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return resp, nil
	}
	s := newStream(t.wire, body)
	if s.inflate, err = agreed(r.Header, resp.Header); err != nil {
		_ = body.Close()
		return nil, err
	}
	resp.Header.Del(extensionsHeader) // or coder/websocket would check it by other rules
	t.wire.stream, resp.Body = s, &s.shell
	return resp, nil
}
