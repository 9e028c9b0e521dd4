package conn

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
)

// LengthPrefix is a [Framer] for messages preceded by their length, in big-endian order. A Write
// fails with [ErrBadMessage] if the length does not fit into the prefix.
type LengthPrefix struct {
	// Size is the number of bytes in the prefix: 1, 2 or 4. Default: 4.
	Size int

	// Varint selects a prefix of 1 to 10 bytes, the unsigned LEB128 of Protocol Buffers and
	// [binary.AppendUvarint]. Size must not be set then.
	Varint bool
}

var _ Framer = LengthPrefix{}

// Validate returns an error naming any invalid option.
func (p LengthPrefix) Validate() error {
	switch {
	case p.Varint && p.Size != 0:
		return errors.New("conn: option LengthPrefix.Varint: no Size goes with it")
	case p.Size != 0 && p.Size != 1 && p.Size != 2 && p.Size != 4:
		return fmt.Errorf("conn: option LengthPrefix.Size is %d: want 1, 2 or 4, or 0 for 4", p.Size)
	}
	return nil
}

// AppendFrame implements [Framer].
func (p LengthPrefix) AppendFrame(dst, message []byte) ([]byte, error) {
	n := uint64(len(message))
	if p.Varint {
		return append(binary.AppendUvarint(dst, n), message...), nil
	}
	bits := 8 * cmp.Or(p.Size, 4)
	if most := uint64(1)<<bits - 1; n > most {
		return dst, fmt.Errorf("%w: %d bytes are more than its length prefix can say (%d)", ErrBadMessage, n, most)
	}
	for bits > 0 {
		bits -= 8
		dst = append(dst, byte(n>>bits))
	}
	return append(dst, message...), nil
}

// ReadFrame implements [Framer].
func (p LengthPrefix) ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	n, err := p.length(r)
	if err != nil {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, &TooBigError{Limit: int64(limit)}
	}
	return ReadBody(r, buf[:0], int(n))
}

// length reads the prefix.
func (p LengthPrefix) length(r *bufio.Reader) (n uint64, err error) {
	if p.Varint {
		return binary.ReadUvarint(r)
	}
	head, err := r.Peek(cmp.Or(p.Size, 4))
	if err != nil {
		return 0, err
	}
	for _, b := range head {
		n = n<<8 | uint64(b)
	}
	_, err = r.Discard(len(head))
	return n, err
}
