package conntest

import (
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Answer is what a [Server] does with one handshake: any [net/http.HandlerFunc].
type Answer = func(w http.ResponseWriter, r *http.Request)

// Status answers with an HTTP status and header, which may be nil, and a body
// that is the status in words: 401, 404, 503, and 200 for a page that is no
// WebSocket endpoint.
func Status(code int, header http.Header) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		http.Error(w, strconv.Itoa(code)+" "+http.StatusText(code), code)
	}
}

// RetryAfter returns the header Retry-After with this value, for [Status]: a number of
// seconds or an HTTP date (RFC 9110, section 10.2.3), or whatever else a server sends.
func RetryAfter(value string) http.Header { return http.Header{"Retry-After": {value}} }

// Redirect answers 302 with that location, relative or not; "" is the request's
// own URL, which makes a loop.
func Redirect(location string) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		target := location
		if target == "" {
			target = r.URL.String()
		}
		http.Redirect(w, r, target, http.StatusFound)
	}
}

// Garbage answers with these bytes, which need not be HTTP, and closes.
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

// Delay waits for d and then gives answer a, unless the client hangs up before.
func Delay(d time.Duration, a Answer) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		wait := time.NewTimer(d)
		defer wait.Stop()
		select {
		case <-wait.C:
			a(w, r)
		case <-r.Context().Done():
		}
	}
}

// Trickle gives answer a, of which n bytes arrive per interval. That holds for the whole
// connection: see [Pipe.Trickle].
func Trickle(n int, interval time.Duration, a Answer) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		PipeOf(r.Context()).Trickle(ToClient, n, interval)
		a(w, r)
	}
}

// hijack takes the connection from net/http; the answer closes it.
func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil // the client is gone
	}
	return c
}
