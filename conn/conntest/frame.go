package conntest

import "encoding/binary"

// Frame is a raw, perhaps invalid WebSocket frame (RFC 6455, section 5.2), for [Frames] or
// [Pipe.Inject].
type Frame struct {
	Head    byte   // FIN, reserved bits, opcode: Fin|TextFrame is a whole message, TextFrame an unfinished one
	Length  uint64 // what the header claims; 0 means the length of Payload
	Payload []byte // what follows the header
	Mask    bool   // masked with the key 0, which changes no byte; a client must mask, a server must not
}

// Bits of Frame.Head. The other opcodes are 0x0 continuation, 0x2 binary, 0x8 close, 0x9 ping and
// 0xA pong.
const (
	Fin       byte = 0x80
	TextFrame byte = 0x1
)

// Bytes returns the frame in wire format.
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
