package conn

import (
	"compress/flate"
	"fmt"
	"io"
	"slices"
	"strings"
)

// What FuzzLikeCoder finds by itself in what was sent, to judge what our reader makes of it.

// walked is a frame, as walk finds it.
type walked struct {
	op      byte
	fin     bool
	odd     bool // has a mask or a reserved bit
	payload []byte
}

// walk returns the whole frames of a stream, how many bytes are left behind them, and how
// large the largest message says that it is. It shares nothing with what it judges.
func walk(stream []byte) (frames []walked, rest int, largest uint64) {
	var message uint64
	for len(stream) >= 2 {
		head, length := 2, uint64(stream[1]&0x7f)
		if length > 125 {
			head = map[uint64]int{126: 4, 127: 10}[length]
			if len(stream) < head {
				break
			}
			length = 0
			for _, b := range stream[2:head] {
				length = length<<8 | uint64(b)
			}
		}
		f := walked{op: stream[0] & 0xf, fin: stream[0] >= fin, odd: stream[0]&0x70 != 0 || stream[1] >= 0x80}
		if f.op < close8 {
			if f.op != opContinuation {
				message = 0
			}
			message += length
			largest = max(largest, message)
		}
		if uint64(len(stream)-head) < length {
			break
		}
		f.payload = stream[head : head+int(length)]
		frames, stream = append(frames, f), stream[head+int(length):]
	}
	return frames, len(stream), largest
}

// answered reports whether the peer's close frame comes behind that many messages. It is
// not known to be so if something odd comes first.
func answered(frames []walked, messages int) (found, known bool) {
	for _, f := range frames {
		switch {
		case messages > 0:
			if f.op < close8 && f.fin {
				messages--
			}
		case f.odd, f.op > opBinary && f.op < close8, f.op > pong:
			return false, false
		case f.op == close8:
			code := 1000
			if len(f.payload) > 1 {
				code = int(f.payload[0])<<8 | int(f.payload[1])
			}
			return f.fin && len(f.payload) != 1 && len(f.payload) <= 125 && checkCode(code) == nil, true
		}
	}
	return false, true
}

// wrote returns the pongs and the close frame among what a client has sent, and the
// messages.
func wrote(sent []byte) (answers, messages []string) {
	for len(sent) > 0 {
		first, size := sentFrame(sent)
		payload := unmasked(slices.Clone(sent[:size]))
		sent = sent[size:]
		switch first {
		case fin | pong:
			answers = append(answers, "pong "+payload)
		case fin | close8:
			answers = append(answers, fmt.Sprintf("close %x %q", payload[:min(2, len(payload))], payload[min(2, len(payload)):]))
			if len(sent) > 0 {
				answers = append(answers, "a frame behind the close frame")
			}
		case fin | text:
			messages = append(messages, payload)
		}
	}
	return answers, messages
}

// hasFinalBlock reports whether a compressed message in stream has a final block.
func hasFinalBlock(stream []byte) bool {
	var payload, said []byte
	compressed := false
	for {
		h, ok := parseHeader(stream)
		if !ok || h.length < 0 || h.length > int64(len(stream)) || len(stream) < h.whole() {
			return false
		}
		frame := stream[h.size:h.whole()]
		stream = stream[h.whole():]
		if h.opcode() >= opClose {
			continue
		}
		if h.opcode() != opContinuation {
			payload, compressed = nil, h.first&bitRSV1 != 0
		}
		if payload = append(payload, frame...); !compressed {
			continue
		}
		r := flate.NewReaderDict(strings.NewReader(string(payload)+deflateTail), said[max(0, len(said)-windowSize):])
		more, err := io.ReadAll(io.LimitReader(r, 10*fuzzedLimit))
		if err == nil {
			return true
		}
		if h.fin() {
			said = append(said, more...)
		}
	}
}
