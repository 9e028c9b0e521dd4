//go:build !js

package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// Read implements [Conn]. It allocates nothing if the message fits into buf. If
// not, it grows a new buffer as data comes in, and takes no length from the wire
// on trust. All of buf may be written to, up to its capacity.
//
// A caller may look for these errors: [CloseError], [TooBigError], [ProtocolError],
// [SlowMessageError], [io.EOF] (the peer hung up between messages), [io.ErrUnexpectedEOF]
// (inside a message) and [net.ErrClosed]. Only one goroutine may read.
func (c *WebSocket) Read(buf []byte) (Message, error) { return c.read(buf, nil) }

// ReadBuffer implements [Transport]. The size is 0 for a message that is compressed or in
// fragments, otherwise the size of the message, and at most the read limit. If buffer returns
// nil for a message of known size, its data gets a slice of exactly that size. The errors are
// the errors of Read.
func (c *WebSocket) ReadBuffer(buffer func(size int) []byte) (Message, error) {
	return c.read(nil, buffer)
}

// read is Read, or ReadBuffer if buffer is not nil.
func (c *WebSocket) read(buf []byte, buffer func(size int) []byte) (Message, error) {
	s, turn := c.wire.stream, &c.wire.reads
	if c.wire.ended() != nil || !turn.begin() {
		return Message{}, c.wire.notReading(s.beforeBlock)
	}
	m, whole := c.atHand(buf, buffer)
	var err error
	if !whole {
		if m, err = c.readMessage(buf, buffer); err == ErrWoken {
			whole = true // nothing has begun
		} else if err != nil {
			err = &lostError{"read", c.wire.end(c.reason(err))}
		}
	}
	if whole || turn.held() {
		s.finish(len(s.win) > 0)
		turn.end()
	}
	return m, err
}

// atHand returns the next message if it has come already, as one frame that needs only to be
// copied: most messages of a burst are like that. Whatever else has come it leaves to
// readMessage.
func (c *WebSocket) atHand(buf []byte, buffer func(size int) []byte) (m Message, whole bool) {
	s := c.wire.stream
	frame := s.win
	if len(frame) < 2 || frame[0] != bitFIN|opText && frame[0] != bitFIN|opBinary {
		return m, false
	}
	size, n := 2, int(frame[1])
	if n == 126 && len(frame) >= 4 {
		if size, n = 4, int(binary.BigEndian.Uint16(frame[2:])); n <= maxControl {
			return m, false
		}
	} else if n > maxControl { // masked, or with a length of 8 bytes, which is never whole at hand
		return m, false
	}
	if n > c.limit || n > len(frame)-size {
		return m, false
	}
	payload := frame[size : size+n]
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
	s.consume(size + n)
	return m, true
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
	if err == nil && c.checkUTF8 {
		err = c.checkText(m)
	}
	if err != nil {
		return Message{}, err
	}
	return m, nil
}

// checkText refuses a text that is not UTF-8.
func (c *WebSocket) checkText(m Message) error {
	if m.Type != Text || utf8.Valid(m.Data) {
		return nil
	}
	return c.refuse(&ProtocolError{Err: errText, code: codeBadData})
}

var (
	errMasked     = errors.New("a masked frame")
	errHugeLength = errors.New("a length whose first bit is set")
	errLongLength = errors.New("a length with more bytes than it needs")
	errNewMessage = errors.New("a new message before the end of the last one")
	errText       = errors.New("text that is not UTF-8")
	errReason     = errors.New("a close reason that is not UTF-8")
	errAccepted   = errors.New("a frame of a kind that is not known")
)

// next waits for the next data frame and consumes its header. Inside a message the frame
// must continue it, otherwise it must begin one. Control frames go to coder/websocket, and
// so do the headers of frames that break the rules, unless coder/websocket would let them
// pass or would hang up without a close frame.
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
		s.announce() // an answer of coder/websocket may wait
		switch {
		case h.masked:
			err = c.refuse(&ProtocolError{Err: errMasked})
		case h.length < 0:
			err = c.refuse(&ProtocolError{Err: errHugeLength})
		case !h.short:
			err = c.refuse(&ProtocolError{Err: errLongLength})
		case h.isControl():
			if err = c.control(h); err == nil && !inside {
				s.finish(len(s.win) > 0)
			}
		case data && !continues:
			err = c.refuse(&ProtocolError{Err: errNewMessage})
		default:
			if err = c.lend(int(h.size)); err == nil {
				err = c.refuse(&ProtocolError{Err: errAccepted})
			}
		}
		if err != nil {
			return h, err
		}
	}
}

// control gives the control frame with header h, and those at hand behind it, to
// coder/websocket, which answers them.
func (c *WebSocket) control(h header) error {
	s := c.wire.stream
	if err := s.await(h.whole()); err != nil {
		return err
	}
	if payload := s.win[h.size:h.whole()]; c.checkUTF8 && h.opcode() == opClose && len(payload) > 2 && !utf8.Valid(payload[2:]) {
		return c.refuse(&ProtocolError{Err: errReason, code: codeBadData})
	}
	n, pings := s.controls()
	if pings > 0 {
		s.out.awaitAnswers(pings)
	}
	return c.lend(n)
}

// lend lets coder/websocket read the next n bytes, which are whole control frames or the header
// of a frame, and returns its error. When it has read them, that counts as a sign of life: of a
// flood so much is at hand that its last byte may have come long ago.
func (c *WebSocket) lend(n int) error {
	s, turn := c.wire.stream, &c.wire.reads
	if !turn.lend() {
		turn.end()
		turn.awaitClose(nil) // next has announced it
		return net.ErrClosed
	}
	s.lent, s.ending = int16(n), true
	done := make(chan error, 1)
	go func() { // on a stack of its own, because a stack that has grown stays large
		_, _, err := c.ws.Reader(lentContext{context.Background()})
		done <- err
	}()
	err := <-done
	s.lent, s.ending = 0, false
	c.wire.noteLife()
	if errors.As(err, new(websocket.CloseError)) {
		c.wire.closeReceived.Store(true) // before Close, which may have come, looks for it
	}
	switch {
	case !turn.takeBack():
		turn.awaitClose(nil) // next has announced it
		return net.ErrClosed
	case err != nil:
		s.out.settle() // its close frame goes out before the caller can cut
		return err
	}
	return nil
}

// lentContext is the context under which coder/websocket reads what it was lent. It has a
// deadline in the past, but never ends. coder/websocket derives a context with a limit of 5 s for
// each control frame, and package context starts no timer for a limit that is later than the
// deadline of the parent. The limit is not needed: all of the frame has come, and a sender takes
// the answer without waiting.
type lentContext struct{ context.Context }

func (lentContext) Deadline() (time.Time, bool) { return time.Time{}, true }

// refuse sends the peer a close frame with err, and returns err. The connection is closed
// then, because coder/websocket has no other way to send one.
func (c *WebSocket) refuse(err error) error {
	code := codeTooBig
	if broken, ok := err.(*ProtocolError); ok {
		code = broken.CloseCode()
	}
	c.wire.stream.announce() // the close frame may wait

	if turn := &c.wire.reads; turn.lend() { // else Close has sent one
		_ = c.ws.Close(websocket.StatusCode(code), cutReason(innermost(err).Error()))
		turn.takeBack()
	}
	return err
}

func (c *WebSocket) tooBig() error { return c.refuse(&TooBigError{Limit: int64(c.limit)}) }

// collect reads a message that is not compressed, whose first frame has header h.
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

// reason returns what an error of reading means. It goes by types, not by texts: if the
// stream has seen no error, the peer has broken the rules.
func (c *WebSocket) reason(err error) error {
	var frame websocket.CloseError
	var protocol *ProtocolError
	var big *TooBigError
	end := c.wire.stream.ended()
	switch {
	case errors.As(err, &frame):
		return &CloseError{Code: int(frame.Code), Reason: frame.Reason}
	case errors.As(err, &protocol):
		return protocol
	case errors.As(err, &big):
		return big
	case c.wire.cut.Load():
		return net.ErrClosed
	case errors.Is(err, context.DeadlineExceeded):
		return errControl
	case closedBelow(err) || end != nil && closedBelow(end):
		return errClosedUnderneath
	case end == io.EOF && c.wire.stream.begun:
		return io.ErrUnexpectedEOF
	case end != nil:
		return end
	}
	if unsent := c.wire.stream.out.failure(); unsent != nil && errors.Is(err, unsent) { // the answer to a ping
		return unsent // a Write may have failed as well, but because of err
	}
	return &ProtocolError{Err: innermost(err)}
}
