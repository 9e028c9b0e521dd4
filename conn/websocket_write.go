//go:build !js

package conn

import (
	"errors"
	"math"
)

// Write implements [Conn]. It allocates nothing. Several goroutines may write:
// they take turns, each under WriteTimeout. A Type that is neither Text nor
// Binary is an error that does not harm the connection.
//
// A message of more than 32 KiB travels in fragments of that size, so that pings and their
// answers pass between two fragments. If a fragment after the first has to wait for the network
// and is then taken by the kernel, the peer has made room: that counts as a sign of life for
// Silence.
//
// The error is [ErrNotWritten] if no byte of the message was handed to the kernel. The error
// carries the cause of the connection's end if that is known.
func (c *WebSocket) Write(m Message) error {
	_, err := c.WriteBatch([]Message{m})
	return err
}

// WriteBatch implements [Transport]: up to 64 messages, or up to 32 KiB with their frames, are
// handed to the kernel together, and WriteTimeout holds for them. Pings and their answers pass
// between two such parts.
func (c *WebSocket) WriteBatch(ms []Message) (n int, err error) {
	if cause := c.wire.notWriting(); cause != nil {
		return 0, notWritten(cause)
	}
	c.wire.writing.begin(c.wire)
	defer c.wire.writing.end()
	out := &c.wire.stream.out
	if failed := out.begin(); failed != nil {
		return 0, notWritten(c.why(failed))
	}
	defer out.end()
	for n < len(ms) && err == nil {
		if n > 0 { // the next ones have a WriteTimeout of their own
			c.wire.writing.end()
			c.wire.writing.begin(c.wire)
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
	if cause := c.wire.notWriting(); cause != nil {
		return 0, notWritten(cause)
	}
	out := &c.wire.stream.out
	var spans [batch]span
	var refused error // why the next message was not added, or only in part
	switch {
	case c.wire.stream.inflate != nil:
		n, refused = c.deflate(ms, &spans)
	case len(ms[0].Data) > fragment:
		if refused = checkType(ms[0]); refused == nil {
			refused = c.divide(byte(ms[0].Type), ms[0].Data)
			spans[0], n = out.next(), 1
		}
	default:
		n, refused = out.addMessages(ms, &spans)
	}
	sent, err := out.flush()
	bad := errors.Is(refused, ErrBadMessage)
	if refused != nil && !bad {
		out.stop(refused) // half a message may have gone out
		err = refused
		if n > 0 {
			spans[n-1].end = math.MaxInt64
		}
	}
	for i, m := range spans[:n] {
		switch {
		case m.start < 0 || m.start >= sent:
			return i, notWritten(c.why(err))
		case m.end > sent:
			return i, &lostError{"write", c.why(err)}
		}
	}
	switch {
	case bad:
		return n, refused
	case refused != nil:
		return n, notWritten(c.why(refused))
	}
	return n, nil
}

// divide adds a message in fragments (RFC 6455, section 5.4), and flushes each except the last.
// first is the first byte of the message, without FIN. A compressed message is divided after its
// compression, and only its first fragment has RSV1 (RFC 7692, section 6.1).
func (c *WebSocket) divide(first byte, rest []byte) error {
	out := &c.wire.stream.out
	for len(rest) > fragment {
		if err := out.addFragment(first, rest[:fragment]); err != nil {
			return err
		}
		if _, err := out.flush(); err != nil {
			return err
		}
		first, rest = opContinuation, rest[fragment:]
	}
	return out.addFragment(bitFIN|first, rest)
}
