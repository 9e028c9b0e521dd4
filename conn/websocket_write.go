//go:build !js

package conn

import (
	"errors"
	"math"
)

// Write implements [Conn]. A message of more than 32 KiB travels in fragments of that size, so that
// pings and pongs pass between them. If a fragment after the first has to wait for the network and
// is then taken by the kernel, that counts as a sign of life for Silence.
//
// The error carries the cause of the connection's end if that is known.
func (c *WebSocket) Write(m Message) error {
	_, err := c.WriteBatch([]Message{m})
	return err
}

// WriteBatch implements [Transport]: up to 64 messages, or up to 32 KiB with their frames, are
// handed to the kernel together, under one WriteTimeout. Pings and pongs pass between two such
// parts.
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
			c.wire.writing.progress()
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
	s := c.wire.stream
	out := &s.out
	var spans [batch]span
	var refused error // why the next message was not added, or only in part
	if s.inflate == nil && len(ms[0].Data) <= fragment {
		n, refused = out.addMessages(ms, &spans)
	} else {
		n, refused = s.addInFragments(ms, &spans)
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

// addInFragments is addMessages for messages of any size, which it compresses if the peers have agreed
// on that. It flushes all fragments of a message except the last.
func (s *stream) addInFragments(ms []Message, spans *[batch]span) (n int, err error) {
	raw := 0 // bytes that were compressed
	for n < min(len(ms), batch) && goesAlong(spans[:n], ms[n]) && err == nil {
		if err := checkType(ms[n]); err != nil {
			return n, err
		}
		first, data := byte(ms[n].Type), ms[n].Data
		if s.inflate == nil || len(data) < s.inflate.least() {
			spans[n], err = s.out.divide(first, data)
		} else {
			buf := frames.Get().(*[]byte)
			if raw += len(data); raw <= fragment {
				*buf = s.inflate.deflate(*buf, data)
			} else { // control frames do not wait for that
				s.out.setCompressing(true)
				*buf = s.inflate.deflate(*buf, data)
				s.out.setCompressing(false)
			}
			spans[n], err = s.out.divide(first|bitRSV1, *buf)
			recycle(buf)
		}
		n++
	}
	return n, err
}

// divide adds a message in fragments (RFC 6455, section 5.4), and flushes each except the last. It returns
// where the message lies, as far as it was added. first is the first byte of the message, without FIN. A
// compressed message is divided after its compression, and only its first fragment has RSV1 (RFC 7692,
// section 6.1).
func (s *sender) divide(first byte, rest []byte) (m span, err error) {
	for len(rest) > fragment {
		if m, err = s.addFragment(first, rest[:fragment]); err != nil {
			return m, err
		}
		if _, err = s.flush(); err != nil {
			return m, err
		}
		s.to.wire.writing.progress()
		first, rest = opContinuation, rest[fragment:]
	}
	return s.addFragment(bitFIN|first, rest)
}
