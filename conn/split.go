package conn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Split splits the frames of a peer that puts several messages into one, such as newline-delimited
// JSON or a JSON array. Each part becomes a message of the same type, in order. Written messages
// are not changed. [Limits].ReadLimit applies to frames.
type Split struct {
	// Func returns the first part of the rest of a frame, as [bufio.ScanLines], [ScanRecords] and
	// [ScanArray] do. Its argument atEOF is always true, and it must not keep data. Empty parts are
	// skipped, and a frame may have no part. If Func returns an error, or neither an advance nor a
	// part, Read returns a [ProtocolError] after the parts before it.
	Func bufio.SplitFunc

	// Parts is the maximum number of parts in a frame, including empty ones. One more is a
	// [ProtocolError]. Default: 4096. Negative is an error.
	Parts int
}

const defaultParts = 4096

// Validate returns an error naming any invalid field.
func (s Split) Validate() error {
	switch {
	case s.Parts < 0:
		return fmt.Errorf("conn: Split.Parts is %d: want a number, or 0 for %d", s.Parts, defaultParts)
	case s.Parts > 0 && s.Func == nil:
		return errors.New("conn: Split.Parts is without effect, because Split.Func is nil: nothing is cut")
	}
	return nil
}

// NewSplit returns a Conn that splits the messages of c, which now belongs to the result. The
// result is a [Transport] or a [Pinger] if c is one, and no [HalfCloser]. Its method Unwrap() Conn
// returns c. The parts of a frame share its memory, which lives as long as any part. An error names
// the invalid field of s, and leaves c alone.
func NewSplit(c Conn, s Split) (Conn, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Func == nil {
		return nil, errors.New("conn: Split.Func is missing")
	}
	if s.Parts == 0 {
		s.Parts = defaultParts
	}
	cut := &split{Conn: c, o: s}
	t, transport := c.(Transport)
	p, pings := c.(Pinger)
	switch {
	case transport && pings:
		return &struct {
			*split
			splitTransport
			Pinger
		}{cut, splitTransport{t, cut}, p}, nil
	case transport:
		return &struct {
			*split
			splitTransport
		}{cut, splitTransport{t, cut}}, nil
	case pings:
		return &struct {
			*split
			Pinger
		}{cut, p}, nil
	}
	return cut, nil
}

// split is a Conn whose messages are cut. It belongs to the goroutine that reads, but for closed.
type split struct {
	Conn
	o Split

	frame  Message // the frame under way; its data is what is not cut yet
	parts  int     // how many parts were cut from the frame
	err    error   // what Read returns from now on; nil: Read goes on
	closed atomic.Bool
}

// splitTransport is the Transport of a split.
type splitTransport struct {
	Transport
	split *split
}

// ReadBuffer implements [Transport]. It does not call buffer, because a part lies in its frame.
func (t splitTransport) ReadBuffer(func(size int) []byte) (Message, error) { return t.split.Read(nil) }

// Unwrap returns the connection below.
func (c *split) Unwrap() Conn { return c.Conn }

// Read implements [Conn]. It does not use the buffer, because a part lies in its frame.
func (c *split) Read([]byte) (Message, error) {
	for c.err == nil {
		for len(c.frame.Data) > 0 && !c.closed.Load() {
			part, err := c.cut()
			if err != nil {
				c.err = &lostError{"read", &ProtocolError{Err: err}}
				_ = c.Conn.CloseNow()
				return Message{}, c.err
			}
			if n := len(part); n > 0 {
				return Message{Type: c.frame.Type, Data: part[:n:n]}, nil
			}
		}
		c.frame, c.err = c.Conn.Read(nil) // into memory of its own
		c.parts = 0
	}
	return Message{}, c.err
}

// cut cuts the next part off the frame.
func (c *split) cut() ([]byte, error) {
	rest := c.frame.Data
	if c.parts == c.o.Parts {
		return nil, fmt.Errorf("more than %d messages in a frame (Split.Parts)", c.o.Parts)
	}
	c.parts++
	n, part, err := c.o.Func(rest, true)
	switch {
	case err == bufio.ErrFinalToken:
		n, err = len(rest), nil
	case err != nil:
		return nil, err
	case n < 0 || n > len(rest):
		return nil, fmt.Errorf("Split.Func has advanced by %d of %d bytes", n, len(rest))
	case n == 0 && len(part) == 0:
		return nil, errHalfPart
	}
	c.frame.Data = rest[n:]
	return part, nil
}

var errHalfPart = errors.New("a frame that ends inside a message")

// Close implements [Conn].
func (c *split) Close(ctx context.Context, code int, reason string) error {
	c.closed.Store(true)
	return c.Conn.Close(ctx, code, reason)
}

// CloseNow implements [Conn].
func (c *split) CloseNow() error {
	c.closed.Store(true)
	return c.Conn.CloseNow()
}

// ScanRecords is a [bufio.SplitFunc] for records that end with the byte 0x1E or with the data, as
// in SignalR, RFC 7464, and the payloads of Engine.IO.
func ScanRecords(data []byte, atEOF bool) (advance int, token []byte, err error) {
	switch i := bytes.IndexByte(data, 0x1e); {
	case i >= 0:
		return i + 1, data[:i], nil
	case atEOF && len(data) > 0:
		return len(data), data, nil
	}
	return 0, nil, nil
}

// ScanArray is a [bufio.SplitFunc] for the elements of a JSON array. Data that does not begin with
// [ is one element. The array must be complete. ScanArray does not check the JSON inside the
// elements. After the first element the rest of the array begins with its comma.
func ScanArray(data []byte, atEOF bool) (advance int, token []byte, err error) {
	const space = " \t\r\n"
	begin := len(data) - len(bytes.TrimLeft(data, space))
	switch {
	case !atEOF || len(data) == 0:
		return 0, nil, nil
	case begin == len(data):
		return len(data), nil, nil
	case data[begin] != '[' && data[begin] != ',':
		return len(data), bytes.Trim(data, space), nil
	}
	end, err := scanElement(data, begin+1)
	if err != nil {
		return 0, nil, err
	}
	token = bytes.Trim(data[begin+1:end], space)
	only := data[begin] == '[' && data[end] == ']' // perhaps an empty array
	switch {
	case len(token) == 0 && !only:
		return 0, nil, errNoElement
	case data[end] == ',':
		return end, token, nil
	case len(bytes.TrimLeft(data[end+1:], space)) > 0:
		return 0, nil, errBehindArray
	}
	return len(data), token, nil
}

var (
	errNoElement   = errors.New("a JSON array with a comma too many")
	errBraces      = errors.New("a JSON array with a brace too many")
	errBehindArray = errors.New("data behind the end of a JSON array")
	errOpenArray   = fmt.Errorf("a JSON array without an end: %w", io.ErrUnexpectedEOF)
)

// scanElement returns the index of the comma or bracket behind the element that begins at i.
func scanElement(data []byte, i int) (end int, err error) {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 && data[i] == ']' {
				return i, nil
			}
			if depth--; depth < 0 {
				return 0, errBraces
			}
		case ',':
			if depth == 0 {
				return i, nil
			}
		}
	}
	return 0, errOpenArray
}
