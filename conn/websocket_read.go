//go:build !js

package conn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"unicode/utf8"
)

// Read implements [Conn]. All of buf may be written to, up to its capacity.
//
// A caller may check for these errors: [CloseError], [TooBigError], [ProtocolError],
// [SlowMessageError], [io.EOF] (the peer hung up between messages), [io.ErrUnexpectedEOF] (inside a
// message) and [net.ErrClosed].
//
// A failed write does not end Read, because the peer's close frame may still arrive. But once a
// ping received after the failure could not be answered, Read continues only as long as something
// arrives within 1 s each time, and then returns the error of the write.
func (c *WebSocket) Read(buf []byte) (Message, error) { return c.read(buf, nil) }

// ReadBuffer implements [Transport]. The size, at most the read limit, is known for a message that
// is neither compressed nor in fragments. If buffer returns nil for it, its data gets a slice of
// exactly that size.
func (c *WebSocket) ReadBuffer(buffer func(size int) []byte) (Message, error) {
	return c.read(nil, buffer)
}

// read is Read, or ReadBuffer if buffer is not nil.
func (c *WebSocket) read(buf []byte, buffer func(size int) []byte) (Message, error) {
	s, turn := c.wire.stream, &c.wire.reads
	if c.wire.ended() != nil || !turn.begin() {
		return Message{}, c.wire.notReading(s.beforeBlock)
	}
	returned := false
	defer func() {
		if !returned {
			c.wire.abandonRead()
		}
	}()
	m, whole := c.atHand(buf, buffer)
	var err error
	if !whole {
		if m, err = c.readMessage(buf, buffer); err == ErrWoken {
			whole = true // nothing has begun
		} else if err != nil {
			err = &lostError{"read", c.wire.end(c.reason(err))}
			c.wire.pings.end()
		}
	}
	if whole || turn.held() {
		s.finish(len(s.win) > 0)
		turn.end()
	}
	returned = true
	return m, err
}

// atHand returns the next message if it has come already, as one frame that needs only to be
// copied: most messages of a burst are like that. Whatever else has come it leaves to
// readMessage.
func (c *WebSocket) atHand(buf []byte, buffer func(size int) []byte) (m Message, whole bool) {
	s := c.wire.stream
	frame := s.win
	head, n := plainFrame(frame)
	if head <= 0 || n > c.limit || n > len(frame)-head {
		return m, false
	}
	payload := frame[head : head+n]
	m.Type = Type(frame[0] & 0xf)
	if c.checkUTF8 && m.Type == Text && !utf8.Valid(payload) {
		return m, false
	}
	if buffer != nil {
		buf = buffer(n)
	}
	if cap(buf) < n {
		same := make([]byte, len(payload)) // the compiler knows the two lines, and does not clear the memory
		copy(same, payload)
		m.Data = same
	} else {
		m.Data = append(buf[:0], payload...)
	}
	s.consume(head + n)
	return m, true
}

// plainFrame returns the sizes of the header and of the payload with which b begins, if the frame needs
// only to be copied: a message in one frame that keeps the rules, is not compressed, and has a length of at
// most 2 bytes. head is 0 if more of the header must come, and negative for another frame. The compiler
// inlines plainFrame.
func plainFrame(b []byte) (head, n int) {
	switch {
	case len(b) > 0 && b[0] != bitFIN|opText && b[0] != bitFIN|opBinary:
		return -1, 0
	case len(b) < 2 || b[1] == 126 && len(b) < 4:
		return 0, 0
	case b[1] <= maxControl:
		return 2, int(b[1])
	case b[1] == 126 && binary.BigEndian.Uint16(b[2:]) > maxControl:
		return 4, int(binary.BigEndian.Uint16(b[2:]))
	}
	return -1, 0 // a mask, a length of 8 bytes, or a length with more bytes than it needs
}

// readMessage reads the frames of a message, into what buffer returns if that is not
// nil.
func (c *WebSocket) readMessage(buf []byte, buffer func(size int) []byte) (Message, error) {
	h, err := c.next(buf[:cap(buf)], false)
	if err != nil {
		return Message{}, err
	}
	compressed := h.first&bitRSV1 != 0
	if buffer != nil {
		size := 0
		if h.fin() && !compressed && c.wire.stream.left <= c.limit {
			size = c.wire.stream.left
		}
		buf = buffer(size)
	}
	m := Message{Type: Type(h.opcode())}
	if compressed {
		m.Data, err = c.inflate(buf[:0], h)
	} else {
		m.Data, err = c.collect(buf[:0], h)
	}
	if err == nil && c.checkUTF8 && m.Type == Text && !utf8.Valid(m.Data) {
		err = c.refuse(&ProtocolError{Err: errText, code: codeBadData})
	}
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

// Violations of the protocol, with the sections of RFC 6455 that forbid them.
var (
	errMasked       = errors.New("a masked frame")                                   // 5.1
	errReserved     = errors.New("a reserved bit that is set")                       // 5.2; RFC 7692, section 6
	errOpcode       = errors.New("an opcode that is not known")                      // 5.2
	errHugeLength   = errors.New("a length whose first bit is set")                  // 5.2
	errLongLength   = errors.New("a length with more bytes than it needs")           // 5.2
	errNewMessage   = errors.New("a new message before the end of the last one")     // 5.4
	errContinuation = errors.New("a continuation of nothing")                        // 5.4
	errControlFrame = errors.New("a control frame that is too long or in fragments") // 5.5
	errCloseCode    = errors.New("a close frame with a wrong code")                  // 5.5.1 and 7.4
	errReason       = errors.New("a close reason that is not UTF-8")                 // 5.5.1 and 8.1
	errText         = errors.New("text that is not UTF-8")                           // 5.6 and 8.1
)

// next waits for the next data frame and consumes its header. Inside a message the frame
// must continue it, otherwise it must begin one (RFC 6455, section 5.4). It answers control
// frames, and refuses frames that break the rules.
func (c *WebSocket) next(land []byte, inside bool) (header, error) {
	s := c.wire.stream
	for {
		h, err := s.header(land)
		if err != nil {
			return h, err
		}
		data, continues := h.isData(s.inflate != nil), h.opcode() == opContinuation
		if data && continues == inside && h.short && !h.masked {
			s.consume(int(h.size))
			if s.left = int(h.length); int64(s.left) != h.length {
				return h, c.tooBig()
			}
			return h, nil
		}
		switch {
		case h.masked:
			err = errMasked
		case h.length < 0:
			err = errHugeLength
		case !h.short:
			err = errLongLength
		case h.isControl():
			if err := c.control(h); err != nil {
				return h, err
			}
			if !inside {
				s.finish(len(s.win) > 0)
			}
			continue
		case data && continues:
			err = errContinuation
		case data:
			err = errNewMessage
		case h.first&bitsRSV != 0:
			err = errReserved
		case h.opcode() >= opClose && h.opcode() <= opPong:
			err = errControlFrame
		default:
			err = errOpcode
		}
		return h, c.refuse(&ProtocolError{Err: err})
	}
}

// control answers the control frame with header h (RFC 6455, section 5.5), unless Close does
// that. The frame may stand between the fragments of a message (section 5.4).
func (c *WebSocket) control(h header) error {
	s, turn := c.wire.stream, &c.wire.reads
	payload, err := s.await(h)
	if err != nil {
		return err
	}
	if turn.asked() {
		s.announce()
		turn.end()
		turn.awaitClose(nil)
		return net.ErrClosed
	}
	switch h.opcode() {
	case opPing: // section 5.5.2
		if s.out.control(opPong, payload) != nil {
			if failure := s.out.failure(); failure != nil { // nil behind a close frame
				s.mute = fmt.Errorf("a ping could not be answered: %w", failure)
			}
		}
	case opPong: // section 5.5.3
		c.wire.pings.answered(payload)
	default:
		return c.goodbye(payload)
	}
	s.consume(h.whole())
	return nil
}

// goodbye answers the close frame of the peer, with which the closing handshake begins (RFC 6455, section
// 7.1.3), with the same code and reason (section 5.5.1), and returns it as an error.
func (c *WebSocket) goodbye(payload []byte) error {
	frame, err := c.parseClose(payload)
	if err == nil && c.checkUTF8 && !utf8.ValidString(frame.Reason) {
		err = &ProtocolError{Err: errReason, code: codeBadData}
	}
	if err != nil {
		return c.refuse(err)
	}
	c.wire.goodbye.Store(frame) // before Close, which may come, or a Write that is stuck looks for it
	c.endWith(payload)
	return frame
}

// parseClose returns the close frame with this payload, or how it breaks the rules (RFC 6455, sections
// 5.5.1, 7.1.6 and 7.4). A frame without a code counts as one with 1005 (section 7.1.5).
func (c *WebSocket) parseClose(payload []byte) (*CloseError, error) {
	switch {
	case len(payload) == 0:
		return &CloseError{Code: noStatus}, nil
	case len(payload) < 2 || checkCode(int(binary.BigEndian.Uint16(payload))) != nil:
		return nil, &ProtocolError{Err: errCloseCode}
	}
	return newCloseError(int(binary.BigEndian.Uint16(payload)), string(payload[2:]), c.redact), nil
}

// refuse sends the peer a close frame with err, closes the connection (RFC 6455, section 7.1.7), and
// returns err.
func (c *WebSocket) refuse(err error) error {
	code, reason := codeTooBig, err
	if broken, ok := err.(*ProtocolError); ok {
		code, reason = broken.CloseCode(), broken.Err
	}
	c.endWith(closePayload(code, reason.Error()))
	return err
}

// endWith sends our close frame, and closes the connection (RFC 6455, section 7.1.4) when the kernel has
// taken it. Section 7.1.1 says that a client SHOULD wait until the server has closed TCP, so that TIME_WAIT is the
// server's. We do not, because Read would wait for it, and a redial for Read, up to a timeout if the
// server never closes; TIME_WAIT costs a client one of its ports for a minute.
//
// A message in progress that the peer does not take delays the close frame by lastWords at most, because
// the peer has ended the conversation. While a Close is under way that does both, even if it comes
// meanwhile.
func (c *WebSocket) endWith(payload []byte) {
	s, turn := c.wire.stream, &c.wire.reads
	if turn.asked() {
		return
	}
	s.announce()                        // the close frame may wait
	_ = s.out.control(opClose, payload) // else one was sent before, or nothing can be sent
	limit := closeLimit
	if s.out.busy() {
		limit = lastWords
	}
	s.out.settle(limit) // it goes out before the caller can cut
	if !turn.asked() {
		_ = s.body.Close()
	}
}

// closePayload is the payload of a close frame.
func closePayload(code int, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), cutReason(reason)...)
}

func (c *WebSocket) tooBig() error { return c.refuse(&TooBigError{Limit: int64(c.limit)}) }

// collect reads a message that is not compressed, whose first frame has header h, and joins its
// fragments (RFC 6455, section 5.4).
func (c *WebSocket) collect(buf []byte, h header) ([]byte, error) {
	s := c.wire.stream
	for {
		if s.left > c.limit-len(buf) {
			return nil, c.tooBig()
		}
		most := c.limit
		if h.fin() {
			most = len(buf) + s.left
		}
		var err error
		if buf, err = s.payload(buf, most); err != nil || h.fin() {
			return buf, err
		}
		if h, err = c.next(nil, true); err != nil {
			return nil, err
		}
	}
}

// reason returns what an error of reading means.
func (c *WebSocket) reason(err error) error {
	switch err.(type) {
	case *CloseError, *ProtocolError, *TooBigError:
		return err
	}
	cause := c.wire.stream.cause(err)
	switch {
	case errors.Is(cause, net.ErrClosed) && c.wire.cut.Load():
		return net.ErrClosed
	case errors.Is(cause, net.ErrClosed):
		return errClosedUnderneath
	case cause == io.EOF && c.wire.stream.begun:
		return io.ErrUnexpectedEOF
	}
	return cause
}
