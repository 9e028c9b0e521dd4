//go:build !js

package dialer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
)

// attempt makes one attempt at the handshake r.
func (d *WebSocket) attempt(ctx context.Context, r *request) (conn.Conn, *Error) {
	return d.endpoints.attempt(ctx, r.url, r.foreign,
		func(ctx context.Context, w *conn.Wire) (net.Conn, error) { return d.connect(ctx, w, r) },
		func(ctx context.Context, w *conn.Wire, nc net.Conn) (conn.Conn, error) {
			return d.upgrade(ctx, w, nc, r)
		})
}

// upgrade makes the handshake of RFC 6455, section 4.1, over nc.
func (d *WebSocket) upgrade(ctx context.Context, w *conn.Wire, nc net.Conn, r *request) (conn.Conn, error) {
	u := &upgrader{nc: nc, limit: d.maxHeaderBytes()}
	ws, _, err := websocket.Dial(ctx, r.url.String(), &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: w.Transport(u)},
		HTTPHeader:      r.header,
		Host:            r.host,
		Subprotocols:    d.Subprotocols,
		CompressionMode: d.Compression.mode(),
	})
	switch {
	case err == nil:
		return conn.NewWebSocket(ws, w, &d.Conn)
	case u.refused != nil:
		return nil, u.refused
	}
	return nil, err
}

// upgrader is the http.RoundTripper under coder/websocket. It makes one request, over a
// connection that exists already, and checks the answer itself: a bad answer is an error
// at once, because coder/websocket would read on for up to 3 s, and net/http would follow
// a redirect.
type upgrader struct {
	nc      net.Conn
	limit   int64        // on the header of the answer, in bytes
	refused *answerError // the answer, if it was no good
}

// readers has the buffers for the answers to handshakes. What such an answer has for a body is
// never read.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

func (u *upgrader) RoundTrip(r *http.Request) (*http.Response, error) {
	unsent := writeRequest(u.nc, r)
	br := readers.Get().(*bufio.Reader)
	defer func() { br.Reset(nil); readers.Put(br) }()
	resp, behind, err := readAnswer(br, u.nc, r, u.limit) // a server may answer before it has read everything
	switch {
	case err != nil && unsent != nil:
		return nil, unsent
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusSwitchingProtocols:
		u.refused = refusal(r, resp, behind)
		return nil, u.refused
	}
	if wrong := checkUpgrade(r.Header, resp.Header); wrong != "" {
		u.refused = newAnswerError(resp, wrong)
		return nil, u.refused
	}
	resp.Body = u.nc
	if len(behind) > 0 {
		resp.Body = &readAhead{u.nc, bytes.Clone(behind)}
	}
	return resp, nil
}

// checkUpgrade returns a text that says what is wrong with the header of a 101, or "". It
// accepts nothing that coder/websocket would refuse.
func checkUpgrade(offer, answer http.Header) string {
	accept, protocol := answer.Get("Sec-Websocket-Accept"), answer.Get("Sec-Websocket-Protocol")
	switch {
	case !contains(tokens(answer, "Connection"), "upgrade"):
		return "Connection does not contain Upgrade, but " + quoted(answer.Get("Connection"))
	case !contains(tokens(answer, "Upgrade"), "websocket"):
		return "Upgrade does not contain websocket, but " + quoted(answer.Get("Upgrade"))
	case accept != acceptKey(offer.Get("Sec-Websocket-Key")):
		return "Sec-WebSocket-Accept does not fit our key: " + quoted(accept)
	case protocol != "" && !contains(tokens(offer, "Sec-Websocket-Protocol"), protocol):
		return "Sec-WebSocket-Protocol was not offered: " + quoted(protocol)
	}
	extensions := tokens(answer, "Sec-Websocket-Extensions")
	if len(extensions) > 1 || len(extensions) == 1 && !isOffered(extensions[0], offer) {
		return "Sec-WebSocket-Extensions was not offered: " + quoted(strings.Join(extensions, ", "))
	}
	return ""
}

// isOffered reports whether extension is permessage-deflate, if we have offered that,
// with parameters that ask nothing else of us (RFC 7692, section 7.1).
func isOffered(extension string, offer http.Header) bool {
	name, params, more := strings.Cut(extension, ";")
	if strings.TrimSpace(name) != "permessage-deflate" || offer.Get("Sec-Websocket-Extensions") == "" {
		return false
	}
	for more {
		var p string
		p, params, more = strings.Cut(params, ";")
		switch p = strings.TrimSpace(p); {
		case p == "client_no_context_takeover", p == "server_no_context_takeover":
		case strings.HasPrefix(p, "server_max_window_bits="):
		default:
			return false
		}
	}
	return true
}

// tokens returns the elements of a header that is a list.
func tokens(h http.Header, name string) (list []string) {
	for _, v := range h[name] {
		for t := range strings.SplitSeq(v, ",") {
			if t = strings.TrimSpace(t); t != "" {
				list = append(list, t)
			}
		}
	}
	return list
}

func contains(list []string, token string) bool {
	for _, t := range list {
		if strings.EqualFold(t, token) {
			return true
		}
	}
	return false
}

// acceptKey returns the right Sec-WebSocket-Accept (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func quoted(s string) string { return fmt.Sprintf(`"%s"`, printable(s)) }

// readAhead is a connection of which some bytes have been read already.
type readAhead struct {
	net.Conn
	ahead []byte
}

func (r *readAhead) Read(p []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.ahead)
	if r.ahead = r.ahead[n:]; len(r.ahead) == 0 {
		r.ahead = nil
	}
	return n, nil
}
