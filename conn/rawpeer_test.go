package conn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// half is one direction of a connection in memory.
type half struct {
	mu     sync.Mutex
	wake   *sync.Cond
	data   []byte
	room   int   // how many bytes it holds before a writer waits
	closed bool  // the reader's end is
	eof    error // what the reader gets after the data: nil while it is open
	late   bool  // the deadline of the reader is over
}

func newHalf() *half {
	h := &half{room: 1 << 30}
	h.wake = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.data) == 0 && h.eof == nil && !h.closed && !h.late {
		h.wake.Wait()
	}
	switch {
	case h.closed:
		return 0, net.ErrClosed
	case h.late:
		return 0, os.ErrDeadlineExceeded
	case len(h.data) == 0:
		return 0, h.eof
	}
	n := copy(p, h.data)
	h.data = h.data[n:]
	h.wake.Broadcast()
	return n, nil
}

func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(p) > 0 {
		for len(h.data) >= h.room && h.eof == nil && !h.closed {
			h.wake.Wait()
		}
		switch {
		case h.eof != nil:
			return n, net.ErrClosed
		case h.closed:
			return n, io.ErrClosedPipe
		}
		part := min(len(p), h.room-len(h.data))
		h.data = append(h.data, p[:part]...)
		n, p = n+part, p[part:]
		h.wake.Broadcast()
	}
	return n, nil
}

// set changes h and wakes all goroutines that wait.
func (h *half) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	h.wake.Broadcast()
}

// end is one end of a connection in memory.
type end struct {
	net.Conn // nil: what is not below is not called
	in, out  *half
}

func pipe() (client, server *end) {
	a, b := newHalf(), newHalf()
	return &end{in: a, out: b}, &end{in: b, out: a}
}

func (e *end) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e *end) Write(p []byte) (int, error) { return e.out.write(p) }

func (e *end) Close() error {
	e.out.set(func() {
		if e.out.eof == nil {
			e.out.eof = io.EOF
		}
	})
	e.in.set(func() { e.in.closed = true })
	return nil
}

// SetReadDeadline supports a deadline that is over, and the zero time.
func (e *end) SetReadDeadline(t time.Time) error {
	e.in.set(func() { e.in.late = !t.IsZero() })
	return nil
}

// ReadsOn reports that reads go on after a deadline.
func (e *end) ReadsOn() bool { return true }

// reset ends what is sent with err.
func (e *end) reset(err error) { e.out.set(func() { e.out.eof = err }) }

// fill lets the peer take only n bytes more.
func (e *end) fill(n int) { e.out.set(func() { e.out.room = len(e.out.data) + n }) }

// hijack is the http.ResponseWriter for websocket.Accept, over a server's end.
type hijack struct {
	header http.Header
	conn   net.Conn
}

func (h *hijack) Header() http.Header         { return h.header }
func (h *hijack) WriteHeader(int)             {}
func (h *hijack) Write(p []byte) (int, error) { return len(p), nil }

func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// link is a WebSocket and what it is connected to, in memory. Nobody but the test
// reads the peer; raw is the connection under it.
type link struct {
	*WebSocket
	wire *Wire
	ws   *websocket.Conn // that made the handshake
	peer *websocket.Conn
	raw  *end
}

// handshake makes the handshake without a byte of HTTP.
type handshake func(r *http.Request) (*http.Response, error)

func (h handshake) RoundTrip(r *http.Request) (*http.Response, error) { return h(r) }

// dial returns a link; the cleanup cuts it.
func dial(t testing.TB, o *WebSocketOptions, mode websocket.CompressionMode) *link {
	l := &link{wire: new(Wire)}
	l.ws = l.shakeHands(t, mode, l.wire.Tap, l.wire.Transport)
	var err error
	l.WebSocket, err = NewWebSocket(l.ws, l.wire, o)
	require.NoError(t, err)
	return l
}

// coders returns a link without a WebSocket of ours: only coder/websocket reads it.
func coders(t testing.TB, mode websocket.CompressionMode, tap func(net.Conn) net.Conn) (*link, *websocket.Conn) {
	l := new(link)
	return l, l.shakeHands(t, mode, tap, func(rt http.RoundTripper) http.RoundTripper { return rt })
}

func untapped(nc net.Conn) net.Conn { return nc }

// shakeHands connects a client, whose connection goes through tap and its handshake
// through transport, to a peer.
func (l *link) shakeHands(t testing.TB, mode websocket.CompressionMode, tap func(net.Conn) net.Conn, transport func(http.RoundTripper) http.RoundTripper) *websocket.Conn {
	client, server := pipe()
	l.raw = server
	shake := func(r *http.Request) (_ *http.Response, err error) {
		w := &hijack{header: http.Header{}, conn: server}
		l.peer, err = websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode, Subprotocols: []string{"v1"}})
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: w.header, Body: tap(client).(io.ReadCloser)}, err
	}
	ws, _, err := websocket.Dial(context.Background(), "ws://test", &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: transport(handshake(shake))},
		CompressionMode: mode,
		Subprotocols:    []string{"v1"},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if l.WebSocket != nil {
			l.CloseNow()
		}
		ws.CloseNow()
		l.raw.Close()
		l.peer.CloseNow()
	})
	return ws
}

// plain returns a link without compression.
func plain(t testing.TB, o *WebSocketOptions) *link {
	return dial(t, o, websocket.CompressionDisabled)
}

// send writes frames as they are to the client.
func (l *link) send(frames ...string) {
	for _, f := range frames {
		_, _ = l.raw.Write([]byte(f))
	}
}

// frame is a frame of up to 65535 bytes as a server sends it; first is its first byte.
func frame(first byte, payload string) string {
	if len(payload) < 126 {
		return string([]byte{first, byte(len(payload))}) + payload
	}
	return string([]byte{first, 126, byte(len(payload) >> 8), byte(len(payload))}) + payload
}

const (
	fin    = 0x80
	rsv1   = 0x40
	text   = 0x1
	bin    = 0x2
	ping   = 0x9
	pong   = 0xA
	close8 = 0x8
)

// background starts f and returns what waits for its result.
func background[T any](f func() T) (wait func() T) {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return func() T { return <-result }
}

// reading reads one message in the background.
func (l *link) reading() (wait func() error) {
	return background(func() error { _, err := l.Read(nil); return err })
}

// innermost returns the error at the bottom of err.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// takes asserts that f takes exactly d of virtual time.
func takes(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	require.Equal(t, d, time.Since(start))
}

const second = time.Second

// sleep lets virtual time pass, and everything happen that is due by then.
func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
}
