package conn

import "encoding/binary"

// header is the header of a WebSocket frame, RFC 6455 5.2.
type header struct {
	length int64 // of the payload; negative where its first bit is set
	first  byte  // FIN, the reserved bits and the opcode
	size   uint8 // of the header, without the key
	short  bool  // the length has the shortest of its three forms
	masked bool  // a key of 4 bytes follows
}

const (
	bitFIN  = 0x80
	bitRSV1 = 0x40
	bitsRSV = 0x70

	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA

	maxControl = 125 // bytes of a control frame's payload
	keySize    = 4   // bytes of the key with which a frame is masked
)

// parseHeader returns the header with which b begins, unless b is too short.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < 2 {
		return h, false
	}
	h = header{first: b[0], masked: b[1]&0x80 != 0, short: true, size: 2, length: int64(b[1] & 0x7f)}
	switch h.length {
	case 126:
		if h.size = 4; len(b) < 4 {
			return h, false
		}
		h.length = int64(binary.BigEndian.Uint16(b[2:]))
		h.short = h.length > maxControl
	case 127:
		if h.size = 10; len(b) < 10 {
			return h, false
		}
		h.length = int64(binary.BigEndian.Uint64(b[2:]))
		h.short = h.length < 0 || h.length > 0xffff
	}
	return h, true
}

func (h header) fin() bool    { return h.first&bitFIN != 0 }
func (h header) opcode() byte { return h.first & 0xf }

// head is the size of what comes before the payload.
func (h header) head() int {
	if h.masked {
		return int(h.size) + keySize
	}
	return int(h.size)
}

// whole is the size of a frame whose payload is known not to be huge.
func (h header) whole() int { return h.head() + int(h.length) }

// isControl reports whether it is of a control frame that keeps the rules.
func (h header) isControl() bool {
	op := h.opcode()
	return op >= opClose && op <= opPong && h.fin() && h.first&bitsRSV == 0 && uint64(h.length) <= maxControl
}

// isData reports whether it is of a data frame that keeps the rules, but for its
// place among others. Only where the peers have agreed on compression may the first
// frame of a message have RSV1, and no continuation may (RFC 7692, section 6.1).
func (h header) isData(compression bool) bool {
	op := h.first &^ bitFIN
	if compression && op != bitRSV1 {
		op &^= bitRSV1
	}
	return op <= opBinary && h.length >= 0
}

// appendFrame appends a masked frame to buf (RFC 6455, sections 5.2 and 5.3). The key
// is of keySize random bytes.
func appendFrame(buf []byte, first byte, key, payload []byte) []byte {
	const masked = 0x80
	switch n := len(payload); {
	case n <= maxControl:
		buf = append(buf, first, masked|byte(n))
	case n <= 0xffff:
		buf = append(buf, first, masked|126)
		buf = binary.BigEndian.AppendUint16(buf, uint16(n))
	default:
		buf = append(buf, first, masked|127)
		buf = binary.BigEndian.AppendUint64(buf, uint64(n))
	}
	buf = append(append(buf, key...), payload...)
	mask(buf[len(buf)-len(payload):], key)
	return buf
}

// mask masks a payload in place.
func mask(p, key []byte) {
	k := uint64(binary.LittleEndian.Uint32(key))
	k |= k << 32
	for len(p) >= 32 {
		for i := 0; i < 32; i += 8 {
			binary.LittleEndian.PutUint64(p[i:], binary.LittleEndian.Uint64(p[i:])^k)
		}
		p = p[32:]
	}
	for i := range p {
		p[i] ^= key[i%keySize]
	}
}
