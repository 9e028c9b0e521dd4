package conntest

import "encoding/binary"

// Frame is one raw WebSocket frame (RFC 6455, section 5.2), which may be wrong in any way.
// Write it with [Frames] or [Pipe.Inject].
type Frame struct {
	Head    byte   // FIN, three reserved bits, opcode: Fin|TextFrame is a whole message, TextFrame an unfinished one
	Length  uint64 // what the header claims; 0: the length of the payload
	Payload []byte // what follows the header
	Mask    bool   // masked with the key 0, which changes no byte; a client must mask, a server must not
}

// The bits of Frame.Head: FIN, and the opcodes that tests need most. A continuation is 0x0, a pong
// is 0xA, and the reserved bits are 0x40, 0x20 and 0x10.
const (
	Fin byte = 0x80

	TextFrame   byte = 0x1
	BinaryFrame byte = 0x2
	CloseFrame  byte = 0x8
	PingFrame   byte = 0x9
	PongFrame   byte = 0xA
)

// Bytes returns the frame as it goes over the wire. The length takes the
// shortest of its three forms.
func (f Frame) Bytes() []byte {
	length := f.Length
	if length == 0 {
		length = uint64(len(f.Payload))
	}
	var mask byte
	if f.Mask {
		mask = 0x80
	}
	b := []byte{f.Head}
	switch {
	case length < 126:
		b = append(b, mask|byte(length))
	case length <= 0xFFFF:
		b = binary.BigEndian.AppendUint16(append(b, mask|126), uint16(length))
	default:
		b = binary.BigEndian.AppendUint64(append(b, mask|127), length)
	}
	if f.Mask {
		b = append(b, 0, 0, 0, 0)
	}
	return append(b, f.Payload...)
}

// ClosePayload returns the payload of a close frame: the code, then the reason.
func ClosePayload(code uint16, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, code), reason...)
}
