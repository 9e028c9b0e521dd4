package conn

import (
	"bufio"
	"fmt"
	"io"
)

// Framer delimits messages in a byte stream. One value serves any number of connections
// concurrently, so it holds no state.
type Framer interface {
	// AppendFrame appends message in its frame to dst, and returns the result. It keeps neither. An
	// error means that the message can never be sent; Write returns it as [ErrBadMessage].
	AppendFrame(dst, message []byte) ([]byte, error)

	// ReadFrame reads exactly one message from r, appends it to buf[:0] and returns the result. It
	// must not consume any byte of the next message, nor return a part of the buffer of r. That
	// buffer holds 512 bytes, which limits Peek.
	//
	// As soon as ReadFrame knows that a message is larger than limit, in bytes, it returns
	// &TooBigError{limit}. It does not allocate memory for a length that it has only read (see
	// [ReadBody]). It returns an error of r as it is or wrapped, including [io.EOF]. Any other
	// error means that the peer violated the protocol, and becomes a [ProtocolError].
	ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error)
}

// Skipper is a [Framer] for a protocol that may have bytes between two messages, such as the
// newlines by which STOMP, XMPP and SIP keep a connection alive. They count as signs of life.
type Skipper interface {
	Framer

	// Skip returns the number of bytes at the beginning of p that belong to no message. p is not
	// empty and begins where a message may begin. Framed discards these bytes before it calls
	// ReadFrame.
	Skip(p []byte) int
}

// ReadBody appends the next n bytes of r to buf, for a [Framer] that has compared the length n to
// the limit. The buffer grows as the bytes arrive, because n may be wrong. If r ends early, the
// error is [io.ErrUnexpectedEOF].
func ReadBody(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	if n < 0 || n > maxLimit-len(buf) {
		return nil, fmt.Errorf("%d bytes cannot follow", n)
	}
	for end := len(buf) + n; len(buf) < end; {
		if len(buf) == cap(buf) {
			buf = roomFor(buf, min(end-len(buf), 4<<10), end)
		}
		part := buf[len(buf):min(end, cap(buf))]
		if _, err := io.ReadFull(r, part); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		buf = buf[:len(buf)+len(part)]
	}
	return buf, nil
}

// roomFor returns buf with room for n bytes more. Where it grows it gets room for twice what it
// will hold then, but for no more than most.
func roomFor(buf []byte, n, most int) []byte {
	need := len(buf) + n
	if need <= cap(buf) {
		return buf
	}
	larger := make([]byte, len(buf), max(need, min(2*need, most)))
	copy(larger, buf)
	return larger
}
