package conn

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// LengthPrefix is a [Framer] for messages that have their length before them. The zero
// value has a prefix of 4 bytes, the most significant first. A Write fails with
// [ErrBadMessage] if the prefix has no room for the length. A length from the wire is
// compared to the limit first, and memory is allocated only as the bytes come in.
type LengthPrefix struct {
	// Size is how many bytes the prefix has: 1, 2 or 4. Default 4.
	Size int

	// LittleEndian puts the least significant byte of the prefix first.
	// Default: the most significant, as network protocols do.
	LittleEndian bool

	// Varint has a prefix of 1 to 10 bytes, as long as the number needs: the
	// unsigned LEB128 of Protocol Buffers and [binary.AppendUvarint]. A prefix
	// that is longer than necessary is a [ProtocolError]. Size and LittleEndian have no
	// meaning then, and must not be set. Default: a fixed size.
	Varint bool
}

var _ Framer = LengthPrefix{}

// Validate returns an error that names the option which is wrong, if one is.
func (p LengthPrefix) Validate() error {
	switch {
	case p.Varint && (p.Size != 0 || p.LittleEndian):
		return errors.New("conn: option LengthPrefix.Varint: no Size or LittleEndian goes with it")
	case p.Size != 0 && p.Size != 1 && p.Size != 2 && p.Size != 4:
		return fmt.Errorf("conn: option LengthPrefix.Size is %d: want 1, 2 or 4, or 0 for 4", p.Size)
	}
	return nil
}

// AppendFrame implements [Framer].
func (p LengthPrefix) AppendFrame(dst, message []byte) ([]byte, error) {
	n := uint64(len(message))
	if n > p.most() {
		return dst, fmt.Errorf("%w: %d bytes are more than its length prefix can say (%d)", ErrBadMessage, n, p.most())
	}
	if p.Varint {
		dst = binary.AppendUvarint(dst, n)
	} else {
		dst = p.appendFixed(dst, n)
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

// size is the size of a fixed prefix.
func (p LengthPrefix) size() int {
	if p.Size == 0 {
		return 4
	}
	return p.Size
}

// most returns the largest length for which the prefix has room.
func (p LengthPrefix) most() uint64 {
	if p.Varint {
		return math.MaxUint64
	}
	return 1<<(8*p.size()) - 1
}

func (p LengthPrefix) appendFixed(dst []byte, n uint64) []byte {
	size := p.size()
	for i := range size {
		at := i
		if !p.LittleEndian {
			at = size - 1 - i
		}
		dst = append(dst, byte(n>>(8*at)))
	}
	return dst
}

// length reads the prefix.
func (p LengthPrefix) length(r *bufio.Reader) (uint64, error) {
	if p.Varint {
		return readVarint(r)
	}
	return p.readFixed(r)
}

func (p LengthPrefix) readFixed(r *bufio.Reader) (n uint64, err error) {
	head, err := r.Peek(p.size())
	if err != nil {
		return 0, err
	}
	for i, b := range head {
		if p.LittleEndian {
			n |= uint64(b) << (8 * i)
		} else {
			n = n<<8 | uint64(b)
		}
	}
	_, err = r.Discard(len(head))
	return n, err
}

// readVarint is [binary.ReadUvarint], but strict: one length has one encoding.
func readVarint(r *bufio.Reader) (n uint64, err error) {
	for i := range binary.MaxVarintLen64 {
		b, err := r.ReadByte()
		switch {
		case err == io.EOF && i > 0:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case i == binary.MaxVarintLen64-1 && b > 1:
			return 0, errOverflow
		case i > 0 && b == 0:
			return 0, errOverlong
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, errOverflow
}

var (
	errOverflow = errors.New("a length of more than 64 bits")
	errOverlong = errors.New("a length with more bytes than it needs")
)
