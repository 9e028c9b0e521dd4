//go:build !js

package conn

import (
	"context"
	"math"

	"github.com/coder/websocket"
)

// Write implements [Conn]. It allocates nothing. Several goroutines may write:
// they take turns, each under WriteTimeout. A Type that is neither Text nor
// Binary is an error that does not harm the connection.
//
// A message of more than 32 KiB travels in fragments of that size, so that pings
// and their answers pass between two of them; a compressed one travels in one
// frame. If a fragment after the first had to wait for the network and the kernel has then
// taken it, that counts as a sign of life for Idle, because the peer has made room.
//
// The error is [ErrNotWritten] if no byte of the message was handed to the kernel.
// It carries the cause of the connection's end if that is known.
func (c *WebSocket) Write(m Message) error {
	_, err := c.WriteBatch([]Message{m})
	return err
}

// WriteBatch implements [BatchWriter]: up to 64 messages, or those that reach 32
// KiB, are handed to the kernel at once, and WriteTimeout holds for these. Without
// a [Wire.Transport] it is a Write for each message.
func (c *WebSocket) WriteBatch(ms []Message) (n int, err error) {
	if cause := c.wire.ended(); cause != nil {
		return 0, notWritten(cause)
	}
	c.wire.writing.begin()
	defer c.wire.writing.end()
	if c.wire.stream == nil {
		return c.writeEach(ms)
	}
	out := &c.wire.stream.out
	if failed := out.begin(0); failed != nil {
		return 0, notWritten(c.why(failed))
	}
	defer out.end()
	for n < len(ms) && err == nil {
		if n > 0 { // the next ones have a WriteTimeout of their own
			c.wire.writing.end()
			c.wire.writing.begin()
		}
		var some int
		some, err = c.writeSome(ms[n:])
		n += some
	}
	return n, err
}

// writeSome writes at least the first of ms, and as many after it as go with it. It
// is our turn.
func (c *WebSocket) writeSome(ms []Message) (n int, err error) {
	if cause := c.wire.ended(); cause != nil {
		return 0, notWritten(cause)
	}
	out := &c.wire.stream.out
	var spans [batch]span
	var bad, failed error
	for n < min(len(ms), batch) && failed == nil {
		if n > 0 && (spans[n-1].end-spans[0].start >= fragment || len(ms[n].Data) >= fragment) {
			break
		}
		if bad = checkType(ms[n]); bad != nil {
			break
		}
		failed = c.put(ms[n])
		spans[n] = out.next()
		n++
	}
	if failed != nil {
		spans[n-1].end = math.MaxInt64
	}
	sent, err := out.flush()
	if failed != nil {
		out.stop(failed) // half a message may have gone out
		err = failed
	}
	for i, m := range spans[:n] {
		switch {
		case m.start < 0 || m.start >= sent:
			return i, notWritten(c.why(err))
		case m.end > sent:
			return i, &lostError{"write", c.why(err)}
		}
	}
	return n, bad
}

// put gives m to coder/websocket, which gives its frames to the sender.
func (c *WebSocket) put(m Message) error {
	ctx := context.Background() // any other costs the connection when it ends
	if len(m.Data) <= fragment || c.wire.stream.inflate != nil {
		return c.ws.Write(ctx, websocket.MessageType(m.Type), m.Data)
	}
	w, err := c.ws.Writer(ctx, websocket.MessageType(m.Type))
	for p := m.Data; err == nil && len(p) > 0; p = p[min(len(p), fragment):] {
		_, err = w.Write(p[:min(len(p), fragment)])
		if err == nil && len(p) > fragment {
			_, err = c.wire.stream.out.flush()
		}
	}
	if err != nil {
		return err
	}
	return w.Close()
}

// writeEach writes ms without a sender. It is our turn.
func (c *WebSocket) writeEach(ms []Message) (n int, err error) {
	for _, m := range ms {
		if cause := c.wire.ended(); cause != nil {
			return n, notWritten(cause)
		}
		if err := checkType(m); err != nil {
			return n, err
		}
		if err := c.ws.Write(context.Background(), websocket.MessageType(m.Type), m.Data); err != nil {
			return n, &lostError{"write", c.why(err)}
		}
		n++
		c.wire.writing.end()
		c.wire.writing.begin()
	}
	return n, nil
}
