package conn

import (
	"bufio"
	"fmt"
	"io"
)

// Framer cuts a stream of bytes into messages, and puts messages into a stream. [Framed]
// needs nothing else of a protocol. [Lines] and [LengthPrefix] are Framers. One value
// serves any number of connections at once, so it holds no state: bytes behind a message
// stay in the reader.
type Framer interface {
	// AppendFrame appends message in its frame to dst, and returns the result. It keeps
	// neither. An error means that such a message cannot be sent at all; Write returns
	// it as [ErrBadMessage].
	AppendFrame(dst, message []byte) ([]byte, error)

	// ReadFrame reads exactly one message from r, appends it to buf[:0] and returns
	// the result. It takes no byte of the next message, and must not return a part of
	// the buffer of r. That buffer holds 512 bytes, so Peek can show no more.
	//
	// No message is larger than limit, in bytes: as soon as ReadFrame knows that one is,
	// it returns &TooBigError{limit}. It does not allocate memory for a length that it
	// has only read (see [ReadBody]). It returns an error of r as it is or wrapped,
	// io.EOF too: Framed knows whether the stream ended inside a message or between
	// two, and never delivers a message that did not come whole. Any other error means
	// that the peer broke the rules, and becomes a [ProtocolError].
	ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error)
}

// ReadBody appends the next n bytes of r to buf, for a [Framer] that has read
// their number. The room for them grows as they come in, because their number may
// be wrong. Compare it to the limit first all the same. If r ends before them the
// error is [io.ErrUnexpectedEOF].
func ReadBody(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	if n < 0 || n > maxLimit-len(buf) {
		return nil, fmt.Errorf("%d bytes cannot follow", n)
	}
	if cap(buf) == 0 {
		buf = make([]byte, 0, min(n, 4<<10))
	}
	for end := len(buf) + n; len(buf) < end; {
		if len(buf) == cap(buf) {
			buf = grow(buf, end-1)
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

// grow returns buf with at least twice the room, but with at most one byte more than limit,
// which is enough to see that a message is too large.
func grow(buf []byte, limit int) []byte {
	size := 512
	if cap(buf) > 0 {
		size = max(2*cap(buf), 4<<10)
	}
	larger := make([]byte, len(buf), max(min(size, limit+1), cap(buf)+1))
	copy(larger, buf)
	return larger
}
