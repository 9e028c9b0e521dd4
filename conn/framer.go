package conn

import (
	"bufio"
	"fmt"
	"io"
)

// Framer cuts a stream of bytes into messages and puts messages into one: the
// whole of a protocol, as far as [Framed] needs to know it. [Lines] and
// [LengthPrefix] are Framers. One value serves any number of connections at once,
// so it holds no state: what is left over from one message stays in the reader.
type Framer interface {
	// AppendFrame appends message as it travels to dst, and returns that. It keeps
	// neither. An error means that such a message cannot be sent at all, and is
	// [ErrBadMessage] in the eyes of who called Write.
	AppendFrame(dst, message []byte) ([]byte, error)

	// ReadFrame reads exactly one message from r, appends it to buf[:0] and returns
	// that. It takes no byte of the next message, and may return no part of r's
	// own buffer. That buffer holds 512 bytes; more than that cannot be peeked at.
	//
	// No message is larger than limit: as soon as one is known to be,
	// &TooBigError{limit} is the error, and no memory is asked for on the word of a
	// length alone (see [ReadBody]). An error of r is returned as it is or wrapped,
	// io.EOF too: Framed knows by itself whether the stream ended inside a message
	// or between two, and never delivers one that its reader was not given whole.
	// Any other error says how the peer broke the rules, and becomes a
	// [ProtocolError].
	ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error)
}

// ReadBody appends the next n bytes of r to buf, for a [Framer] that has read
// their number. The room for them grows as they come in, since their number may be
// a lie; compare it to the limit first all the same. If r ends before them the
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

// grow returns buf with at least twice the room, but no more than shows that a
// message is over the limit.
func grow(buf []byte, limit int) []byte {
	size := 512
	if cap(buf) > 0 {
		size = max(2*cap(buf), 4<<10)
	}
	larger := make([]byte, len(buf), max(min(size, limit+1), cap(buf)+1))
	copy(larger, buf)
	return larger
}
