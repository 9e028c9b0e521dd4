package conntest

import (
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
)

// Answer responds to one handshake with a [Server]: any [net/http.HandlerFunc].
type Answer = func(w http.ResponseWriter, r *http.Request)

// Status responds with an HTTP status, a header, which may be nil, and the status text as the body.
func Status(code int, header http.Header) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		http.Error(w, strconv.Itoa(code)+" "+http.StatusText(code), code)
	}
}

// RetryAfter returns a header Retry-After for [Status]: seconds, an HTTP date (RFC 9110, section
// 10.2.3), or anything else.
func RetryAfter(value string) http.Header { return http.Header{"Retry-After": {value}} }

// Garbage responds with data, which need not be HTTP, and closes the connection.
func Garbage(data []byte) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		if c := hijack(w); c != nil {
			c.Write(data)
			c.Close()
		}
	}
}

// BadAccept responds 101 with a wrong Sec-WebSocket-Accept and waits for the client to hang up.
func BadAccept(w http.ResponseWriter, _ *http.Request) {
	if c := hijack(w); c != nil {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: bm90IHRoZSByaWdodCBhbnN3ZXI=\r\n\r\n")
		io.Copy(io.Discard, c)
		c.Close()
	}
}

// Hang never responds; it waits for the client to hang up.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// HangUp closes the connection without a response.
func HangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// hijack takes the connection from net/http; the answer closes it.
func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil // the client is gone
	}
	return c
}
