package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The first byte of a client's message asks something of the server.
const (
	askPour  = 'P' // with two numbers of 4 bytes: so many messages of such a size
	askEcho  = 'E' // the same message back
	askCount = 'C' // an answer of 1 byte to every 64th
	askReset = 'R' // reset all connections
	askWake  = 'W' // one message to each connection
	askTicks = 'T' // with two numbers of 4 bytes: so many messages, one after each so many microseconds, with the time in each
)

// burst is how many sends are answered together, and how many echoes are under way.
const burst = 64

// pourOrder is the message that asks for messages of a size.
func pourOrder(size, count int) []byte {
	p := binary.BigEndian.AppendUint32([]byte{askPour}, uint32(size))
	return binary.BigEndian.AppendUint32(p, uint32(count))
}

// pourSize returns what a pourOrder asks for. Sizes and counts that no row has are errors.
func pourSize(p []byte) (size, count int, err error) {
	if len(p) != 9 {
		return 0, 0, fmt.Errorf("read order: %d bytes instead of 9", len(p))
	}
	size, count = int(binary.BigEndian.Uint32(p[1:])), int(binary.BigEndian.Uint32(p[5:]))
	if size < 2 || size > 64<<10 || count < 1 {
		return 0, 0, fmt.Errorf("read order: %d messages of %d bytes", count, size)
	}
	return size, count, nil
}

// ticksOrder is the message that asks for messages one by one.
func ticksOrder(count int, every time.Duration) []byte {
	p := binary.BigEndian.AppendUint32([]byte{askTicks}, uint32(count))
	return binary.BigEndian.AppendUint32(p, uint32(every/time.Microsecond))
}

// ticks returns what a ticksOrder asks for.
func ticks(p []byte) (count int, every time.Duration, err error) {
	if len(p) != 9 {
		return 0, 0, fmt.Errorf("read order: %d bytes instead of 9", len(p))
	}
	count, every = int(binary.BigEndian.Uint32(p[1:])), time.Duration(binary.BigEndian.Uint32(p[5:]))*time.Microsecond
	if count < 1 || every <= 0 {
		return 0, 0, fmt.Errorf("read order: %d messages, one each %v", count, every)
	}
	return count, every, nil
}

// stamped is a message with the present time, and sent returns that.
func stamped() []byte {
	p := payload(128)
	binary.BigEndian.PutUint64(p[1:], uint64(time.Now().UnixNano()))
	return p
}

func sent(p []byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(p[1:]))) }

// payload is what each message of a pour is, of at least 2 bytes.
func payload(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i)
	}
	p[0] = 'D'
	return p
}

// numbered is message n of the feed.
func numbered(n int) []byte {
	p := payload(128)
	binary.BigEndian.PutUint32(p[1:], uint32(n))
	return p
}

// number returns which message of the feed p is, or -1 if it is none.
func number(p []byte) int {
	if len(p) != 128 || p[0] != 'D' || p[127] != 127 {
		return -1
	}
	return int(binary.BigEndian.Uint32(p[1:]))
}

// wire is how frames look on a connection, at the server's end.
type wire interface {
	// appendFrame appends a message as the server sends it.
	appendFrame(dst, p []byte) []byte

	// readFrame reads one message of the client's into buf; answer is what the protocol
	// itself wants to be written, and then there is no message.
	readFrame(r *bufio.Reader, buf []byte) (p, answer []byte, err error)
}

// lengthWire has a length of 4 bytes before each message.
type lengthWire struct{}

func (lengthWire) appendFrame(dst, p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(p))), p...)
}

func (lengthWire) readFrame(r *bufio.Reader, buf []byte) (p, answer []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, nil, err
	}
	p, err = readBody(r, buf, int(binary.BigEndian.Uint32(head[:])))
	return p, nil, err
}

// webSocketWire is the server's half of RFC 6455, as far as unfragmented messages and
// control frames go.
type webSocketWire struct{}

// Opcodes, and bits of a frame's first byte.
const (
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10

	bitFin   = 0x80
	bitRSV1  = 0x40
	reserved = 0x70
)

func (webSocketWire) appendFrame(dst, p []byte) []byte { return appendWebSocket(dst, opBinary, p) }

// appendWebSocket appends a whole message or a control frame, whose first byte has bitFin and those of first.
func appendWebSocket(dst []byte, first byte, p []byte) []byte {
	dst = append(dst, bitFin|first)
	switch n := len(p); {
	case n < 126:
		dst = append(dst, byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 127), uint64(n))
	}
	return append(dst, p...)
}

func (webSocketWire) readFrame(r *bufio.Reader, buf []byte) (p, answer []byte, err error) {
	_, p, answer, err = readWebSocket(r, buf, 0)
	return p, answer, err
}

// readWebSocket reads one frame. Of its first byte the bits in free may have any value; of the others bitFin
// must be set, and those that are reserved must not.
func readWebSocket(r *bufio.Reader, buf []byte, free byte) (first byte, p, answer []byte, err error) {
	var head [14]byte // of the longest frame
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, nil, err
	}
	n, more := uint64(head[1]&0x7f), 4 // the mask
	switch n {
	case 126:
		more += 2
	case 127:
		more += 8
	}
	if _, err := io.ReadFull(r, head[2:2+more]); err != nil {
		return 0, nil, nil, err
	}
	switch n {
	case 126:
		n = uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		n = binary.BigEndian.Uint64(head[2:])
	}
	if (head[0]^bitFin)&(bitFin|reserved)&^free != 0 || head[1]&0x80 == 0 {
		return 0, nil, nil, fmt.Errorf("read frame: header % x", head[:2])
	}
	if p, err = readBody(r, buf, int(min(n, 1<<30))); err != nil {
		return 0, nil, nil, err
	}
	mask := head[2+more-4 : 2+more]
	for i := range p {
		p[i] ^= mask[i&3]
	}
	switch head[0] & 0x0f {
	case opPing:
		return head[0], nil, appendWebSocket(nil, opPong, p), nil
	case opPong:
		return head[0], nil, []byte{}, nil
	case opClose:
		return head[0], nil, appendWebSocket(nil, opClose, p), io.EOF
	}
	return head[0], p, nil, nil
}

// readBody reads n bytes into buf, or into a larger slice. No client sends long messages.
func readBody(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	if n > 1<<20 {
		return nil, fmt.Errorf("read frame: %d bytes", n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(r, buf[:n])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return buf[:n], err
}

// block is as many frames of one message as make 64 KiB, and how many those are.
func block(w wire, p []byte, count int) (frames []byte, n int) {
	one := w.appendFrame(nil, p)
	n = min(count, 1+(64<<10)/len(one))
	return bytes.Repeat(one, n), n
}
