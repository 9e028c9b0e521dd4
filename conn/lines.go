package conn

import (
	"bufio"
	"bytes"
	"fmt"
)

// Lines is a [Framer] for messages that are lines. Each message is the text before a line feed; an
// empty line is an empty message. A last line without a line feed is not delivered. Both LF and
// CRLF are read.
//
// A Write fails with [ErrBadMessage] if the message contains a line feed, is longer than Limit, or
// ends in a CR.
type Lines struct {
	// Limit is the maximum length, in bytes, of a line that is read or written, without its end.
	// Negative is an error. Default: the ReadLimit of the connection for reading, no limit for
	// writing.
	Limit int

	// CRLF writes CRLF after each message. Default: LF.
	CRLF bool
}

var _ Framer = Lines{}

// Validate returns an error naming any invalid option.
func (l Lines) Validate() error {
	if l.Limit < 0 {
		return fmt.Errorf("conn: option Lines.Limit is %d: want a size in bytes, or 0 for none but ReadLimit", l.Limit)
	}
	return nil
}

// AppendFrame implements [Framer].
func (l Lines) AppendFrame(dst, message []byte) ([]byte, error) {
	switch {
	case l.Limit > 0 && len(message) > l.Limit:
		return dst, fmt.Errorf("%w: %d bytes are more than a line may have (%d)", ErrBadMessage, len(message), l.Limit)
	case bytes.IndexByte(message, '\n') >= 0:
		return dst, fmt.Errorf("%w: a line feed inside a line", ErrBadMessage)
	case endsInCR(nil, message):
		return dst, fmt.Errorf("%w: a CR at the end of a line would be lost", ErrBadMessage)
	}
	dst = append(dst, message...)
	if l.CRLF {
		dst = append(dst, '\r')
	}
	return append(dst, '\n'), nil
}

// ReadFrame implements [Framer].
func (l Lines) ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	if l.Limit > 0 {
		limit = min(limit, l.Limit)
	}
	buf = buf[:0]
	for {
		piece, err := r.ReadSlice('\n')
		whole := err == nil
		if whole {
			piece = piece[:len(piece)-1]
		} else if err != bufio.ErrBufferFull {
			return nil, err
		}
		if size := len(buf) + len(piece); size > limit && !(size == limit+1 && endsInCR(buf, piece)) {
			return nil, &TooBigError{Limit: int64(limit)} // even if its CR belongs to the line's end
		}
		buf = append(roomFor(buf, len(piece), limit+1), piece...)
		if whole {
			if endsInCR(nil, buf) {
				buf = buf[:len(buf)-1]
			}
			return buf, nil
		}
	}
}

// endsInCR reports whether a line of two parts ends in a CR that is no part of the
// message, or will not be if a line feed follows.
func endsInCR(head, tail []byte) bool {
	if len(tail) == 0 {
		tail = head
	}
	return len(tail) > 0 && tail[len(tail)-1] == '\r'
}
