package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall/js"
	"time"
)

// WebSocket is a [Conn] over the WebSocket object of a browser, which [OpenWebSocket] opens. It is
// more limited than elsewhere:
//
//   - There is no Ping, and Silence counts from the last whole message.
//   - Nothing slows the peer down while the program does not read. [UnreadError] limits the unread
//     messages.
//   - Write passes a message to the browser. While more than 1 MiB is buffered there, Write waits,
//     as long as the browser sends 32 KiB within each WriteTimeout.
//   - A connection cannot be aborted. CloseNow begins to close it, without a code, and does not
//     wait; the browser closes it when the peer has replied, or after a timeout.
//   - Close can send 1000 and 3000 to 4999. Instead of another code of RFC 6455, section 7.4, it
//     sends the code plus 3000, such as 4001 for 1001.
//   - A connection that ends without a close frame is [io.EOF], whatever the cause: the browser
//     reports 1006 and no reason.
type WebSocket struct {
	socket js.Value
	limits Limits
	redact func(reason string) string // or nil
	stop   [3]func()                  // end the handlers of message, close, and error
	waits  func()                     // called by Read before it waits; may be nil

	opened chan struct{} // closed by the event open
	ended  chan struct{} // closed with the first cause
	closed chan struct{} // closed by the event close: the browser does nothing more
	more   chan struct{} // holds 1: something has come

	mu     sync.Mutex // guards what follows; held for moments only
	unread []Message
	size   int64 // what unread takes, in bytes
	cause  error // why the connection ended: the first reason only
	heard  time.Duration

	clean bool // the peer has answered our close frame, or we its; to be read after closed is closed
}

var _ interface {
	Conn
	Transport
} = (*WebSocket)(nil)

// UnreadError is the error of Read when messages arrived faster than they were read: the buffer was
// full, and a browser cannot make the peer wait. Read returns the messages before it first.
type UnreadError struct {
	Limit int64 // in bytes: twice the ReadLimit
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("messages of more than %d bytes were waiting to be read", e.Limit)
}

const (
	buffered    = 1 << 20               // bytes that may wait in the browser when a write begins
	look        = 20 * time.Millisecond // between two looks at how much waits
	overhead    = 64                    // bytes that an unread message counts besides its data
	readyOpen   = 1                     // the readyState of a socket that is open
	codeTooMuch = 1008                  // policy violation: what the peer gets for an UnreadError
)

// errAbnormal is why a connection ended without a close frame.
var errAbnormal = fmt.Errorf("the peer hung up without a close frame (1006, a browser does not say why): %w", io.EOF)

// errHandshake is why a socket was never open.
var errHandshake = fmt.Errorf("the handshake has failed (1006, a browser does not say why): %w", io.EOF)

// OpenWebSocket opens a WebSocket, with the limits of o, which may be nil. It offers the
// subprotocols, the best first. If ctx is done before the handshake is complete, OpenWebSocket
// returns context.Cause of ctx. It exists for GOOS=js only; elsewhere there is NewWebSocket. The
// caller must call Close or CloseNow in the end.
func OpenWebSocket(ctx context.Context, url string, subprotocols []string, o *WebSocketOptions) (*WebSocket, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	offered := make([]any, len(subprotocols))
	for i, s := range subprotocols {
		offered[i] = s
	}
	var socket js.Value
	if err := try(func() { socket = js.Global().Get("WebSocket").New(url, offered) }); err != nil {
		// Without the browser's text, which has the URL, and so its password and its query.
		if thrown, ok := errors.AsType[js.Error](err); ok {
			err = fmt.Errorf("the browser refuses the URL or a subprotocol: %s", thrown.Get("name").String())
		}
		return nil, err
	}
	socket.Set("binaryType", "arraybuffer")
	c := &WebSocket{
		socket: socket, limits: options.Limits, redact: options.Redact, heard: clock(),
		opened: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}), more: make(chan struct{}, 1),
	}
	failed := make(chan struct{}) // closed by the first event error
	fail := sync.OnceFunc(func() { close(failed) })
	var stopOpen func()
	stopOpen = c.on("open", func(js.Value) { close(c.opened); stopOpen() })
	c.stop = [3]func(){
		c.on("message", func(e js.Value) { c.take(e.Get("data")) }),
		c.on("close", func(e js.Value) {
			c.finish(e.Get("code").Int(), e.Get("reason").String(), e.Get("wasClean").Bool())
			stopOpen()
		}),
		c.on("error", func(js.Value) { fail() }), // of an open socket: close follows, which says more
	}
	select {
	case <-c.opened:
		return c, nil
	case <-c.closed:
		err = errHandshake
	case <-failed: // Node 20 reports an error, but no close, of a socket that was never open
		err = errHandshake
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = c.CloseNow()
	stopOpen()
	for _, stop := range c.stop {
		stop()
	}
	return nil, err
}

// on calls f for each event of a name. Calls of stop after the first do nothing.
func (c *WebSocket) on(name string, f func(event js.Value)) (stop func()) {
	handler := js.FuncOf(func(_ js.Value, args []js.Value) any {
		f(args[0])
		return nil
	})
	c.socket.Call("addEventListener", name, handler)
	return sync.OnceFunc(func() {
		c.socket.Call("removeEventListener", name, handler)
		handler.Release()
	})
}

// take keeps a message that has come, unless it is too large or there is no room.
func (c *WebSocket) take(data js.Value) {
	m, size := Message{Type: Text}, int64(0)
	if data.Type() == js.TypeString {
		// In UTF-16, so that a text has at least as many bytes. Only an object has a length.
		size = int64(js.Global().Get("Object").New(data).Get("length").Int())
	} else {
		m.Type, size = Binary, int64(data.Get("byteLength").Int())
	}
	if size <= c.limits.ReadLimit { // what is larger is not copied
		if m.Type == Text {
			m.Data = []byte(data.String())
			size = int64(len(m.Data))
		} else {
			m.Data = make([]byte, size)
			js.CopyBytesToGo(m.Data, js.Global().Get("Uint8Array").New(data))
		}
	}
	c.mu.Lock()
	room := 2 * min(c.limits.ReadLimit, maxLimit/2)
	tooBig, tooMuch := size > c.limits.ReadLimit, len(c.unread) > 0 && c.size+size+overhead > room
	if c.heard = clock(); c.cause == nil && !tooBig && !tooMuch {
		c.unread, c.size = append(c.unread, m), c.size+size+overhead
	}
	c.mu.Unlock()
	switch {
	case tooBig:
		c.fail(&TooBigError{Limit: c.limits.ReadLimit}, codeTooBig, "a message was too large")
	case tooMuch:
		c.fail(&UnreadError{Limit: room}, codeTooMuch, "messages came faster than they were read")
	default:
		select {
		case c.more <- struct{}{}:
		default:
		}
	}
}

// finish takes the end of the connection, which the browser reports once.
func (c *WebSocket) finish(code int, reason string, clean bool) {
	var cause error = newCloseError(code, reason, c.redact)
	if !clean {
		cause = errAbnormal
	}
	c.clean = clean
	c.end(cause)
	for _, stop := range c.stop {
		stop()
	}
	close(c.closed)
}

// end keeps the first cause of the connection's end, and returns that.
func (c *WebSocket) end(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
		close(c.ended)
	}
	if errors.Is(cause, net.ErrClosed) {
		c.unread, c.size = nil, 0 // nobody reads after a Close
	}
	return c.cause
}

// fail ends the connection because of cause, and begins to close it.
func (c *WebSocket) fail(cause error, code int, reason string) {
	c.end(cause)
	_ = c.begin(code, reason)
}

// begin begins to close the connection, by a code that a browser takes, or by none for 0.
func (c *WebSocket) begin(code int, reason string) error {
	if code > 1000 && code < 3000 {
		code += 3000
	}
	return try(func() {
		if code == 0 {
			c.socket.Call("close")
			return
		}
		c.socket.Call("close", code, cutReason(reason))
	})
}

// Read implements [Conn]. Only one goroutine may read. Messages that arrived before the end of the
// connection are returned before its cause.
func (c *WebSocket) Read(buf []byte) (Message, error) {
	return c.ReadBuffer(func(int) []byte { return buf })
}

// ReadBuffer implements [Transport]. The size is always the size of the message.
func (c *WebSocket) ReadBuffer(buffer func(size int) []byte) (Message, error) {
	for {
		m, ok, cause := c.next()
		switch {
		case ok:
			m.Data = append(buffer(len(m.Data))[:0], m.Data...)
			return m, nil
		case cause != nil:
			return Message{}, &lostError{"read", cause}
		}
		if c.waits != nil {
			c.waits()
		}
		select {
		case <-c.more:
		case <-c.ended:
		}
	}
}

// next takes the next message if there is one; cause is why none will come.
func (c *WebSocket) next() (m Message, ok bool, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unread) == 0 {
		return m, false, c.cause
	}
	m, c.unread[0] = c.unread[0], m
	c.size -= int64(len(m.Data)) + overhead
	if c.unread = c.unread[1:]; len(c.unread) == 0 {
		c.unread = nil // an idle connection keeps no memory
	}
	return m, true, nil
}

// BeforeBlock implements [Transport].
func (c *WebSocket) BeforeBlock(f func()) bool {
	c.waits = f
	return true
}

// Silence implements [Transport]. It counts from the last whole message.
func (c *WebSocket) Silence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clock() - c.heard
}

// HungUp implements [Transport].
func (c *WebSocket) HungUp() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// LocalAddr implements [Transport]. It returns nil, because a browser hides the address.
func (c *WebSocket) LocalAddr() net.Addr { return nil }

// Subprotocol returns the subprotocol that both sides have agreed on, or "".
func (c *WebSocket) Subprotocol() string { return c.socket.Get("protocol").String() }

// Close implements [Conn]. A nil error means that the peer has replied. When ctx is done, Close
// returns, and the browser continues closing by itself. For the codes see [WebSocket].
func (c *WebSocket) Close(ctx context.Context, code int, reason string) error {
	err := checkCode(code)
	if err == nil {
		err = context.Cause(ctx)
	}
	if cause := c.end(net.ErrClosed); err == nil && !errors.Is(cause, net.ErrClosed) {
		err = cause // it was dead before
	}
	if err != nil {
		_ = c.CloseNow()
		return &lostError{"close", err}
	}
	if err = c.begin(code, reason); err == nil {
		select {
		case <-c.closed:
			if !c.clean {
				err = errAbnormal
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return &lostError{"close", err}
	}
	return nil
}

// CloseNow implements [Conn], as far as a browser can: see [WebSocket]. The error is always nil.
func (c *WebSocket) CloseNow() error {
	c.fail(net.ErrClosed, 0, "")
	return nil
}

// try calls f and returns what JavaScript throws in it.
func try(f func()) (err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case js.Error:
			err = thrown
		default:
			panic(thrown)
		}
	}()
	f()
	return nil
}
