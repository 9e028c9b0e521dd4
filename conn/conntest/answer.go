package conntest

import (
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
)

// Answer is what a [Server] does with one handshake: any [net/http.HandlerFunc].
type Answer = func(w http.ResponseWriter, r *http.Request)

// Status answers with an HTTP status, a header, which may be nil, and the status in words for
// a body. 200 stands for a page that is no WebSocket endpoint.
func Status(code int, header http.Header) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		http.Error(w, strconv.Itoa(code)+" "+http.StatusText(code), code)
	}
}

// RetryAfter returns the header Retry-After with this value, for [Status]: a number of
// seconds or an HTTP date (RFC 9110, section 10.2.3), or whatever else a server sends.
func RetryAfter(value string) http.Header { return http.Header{"Retry-After": {value}} }

// Garbage answers with data, which need not be HTTP, and closes the connection.
func Garbage(data []byte) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		if c := hijack(w); c != nil {
			c.Write(data)
			c.Close()
		}
	}
}

// BadAccept answers 101 with the wrong Sec-WebSocket-Accept and waits for the
// client to hang up.
func BadAccept(w http.ResponseWriter, _ *http.Request) {
	if c := hijack(w); c != nil {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: bm90IHRoZSByaWdodCBhbnN3ZXI=\r\n\r\n")
		io.Copy(io.Discard, c)
		c.Close()
	}
}

// Hang never answers the handshake; it waits for the client to hang up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// HangUp closes the connection without an answer.
func HangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// hijack takes the connection from net/http; the answer closes it.
func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil // the client is gone
	}
	return c
}
