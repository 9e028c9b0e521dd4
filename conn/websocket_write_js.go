package conn

import (
	"fmt"
	"math"
	"syscall/js"
	"time"
	"unicode/utf8"
)

// Write implements [Conn]. Nil means that the browser has taken the message. A Text that is
// not UTF-8 is [ErrBadMessage], because a browser would change it.
func (c *WebSocket) Write(m Message) error {
	if err := checkType(m); err != nil {
		return err
	}
	if m.Type == Text && !utf8.Valid(m.Data) {
		return notWritten(fmt.Errorf("%w: a browser sends only UTF-8 as Text", ErrBadMessage))
	}
	if err := c.awaitRoom(); err != nil {
		return notWritten(err)
	}
	if c.socket.Get("readyState").Int() != readyOpen { // send would drop it, and say nothing
		return notWritten(errEnded)
	}
	if err := try(func() {
		if m.Type == Text {
			c.socket.Call("send", string(m.Data))
			return
		}
		data := js.Global().Get("Uint8Array").New(len(m.Data))
		js.CopyBytesToJS(data, m.Data)
		c.socket.Call("send", data)
	}); err != nil {
		return notWritten(err)
	}
	return nil
}

// WriteBatch implements [Transport]: it is a Write for each message.
func (c *WebSocket) WriteBatch(ms []Message) (n int, err error) {
	for n < len(ms) {
		if err := c.Write(ms[n]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// awaitRoom waits until the browser has sent most of what it was given, and closes the
// connection if WriteTimeout passes in which it sends less than a fragment.
func (c *WebSocket) awaitRoom() error {
	for start, before := clock(), math.MaxInt; ; {
		select {
		case <-c.ended:
			return c.end(errEnded)
		default:
		}
		waiting := c.socket.Get("bufferedAmount").Int()
		switch {
		case waiting <= buffered:
			return nil
		case waiting <= before-fragment:
			start, before = clock(), waiting
		}
		if limit := c.limits.WriteTimeout; limit > 0 && clock()-start >= limit {
			cause := c.end(&SlowMessageError{Op: "write", Limit: limit})
			_ = c.begin(0, "")
			return cause
		}
		select {
		case <-time.After(look):
		case <-c.ended:
		}
	}
}
