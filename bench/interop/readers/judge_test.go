package readers

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPing         = 9
	opPong         = 10

	maxControl = 125
)

// rule names what ends the reading of a stream: a rule of the protocol that the stream breaks, a close frame, or the end of the bytes.
type rule string

const (
	ruleMasked     rule = "a masked frame"
	ruleRSV        rule = "a reserved bit without compression"
	ruleRSV23      rule = "RSV2 or RSV3 with compression"
	ruleRSV1Late   rule = "RSV1 of a continuation or a control frame"
	ruleOpcode     rule = "an unknown opcode"
	ruleControl    rule = "a control frame of more than 125 bytes"
	ruleFragmented rule = "a fragmented control frame"
	ruleNothing    rule = "a continuation of nothing"
	ruleNewMessage rule = "a new message inside another"
	ruleLong       rule = "a length with more bytes than it needs"
	ruleLongOfPing rule = "such a length of a control frame"
	ruleHuge       rule = "a length whose first bit is set"
	ruleTooBig     rule = "a message over the limit"
	ruleBigWire    rule = "a compressed message whose compressed form is over the limit"
	ruleNeverFits  rule = "a compressed form that is over twice the limit and 64 KiB"
	ruleBigInflate rule = "a compressed message that is over the limit"
	ruleText       rule = "a text that is not UTF-8"
	ruleDeflate    rule = "compressed data that is damaged or cut short"
	ruleNoPayload  rule = "a compressed message without a byte"
	ruleFinalBlock rule = "compressed data with a final block"
	ruleClosed     rule = "a close frame"
	ruleCode1014   rule = "a close frame with code 1014"
	ruleCode       rule = "a close frame with a code that may not be sent"
	ruleOneByte    rule = "a close frame of one byte"
	ruleReason     rule = "a close reason that is not UTF-8"
	ruleCloseIn    rule = "a close frame inside a compressed message"
	ruleEnd        rule = "an end between messages"
	ruleCut        rule = "an end inside a frame"
	ruleCutBetween rule = "an end between the fragments of a message"
	ruleCutDeflate rule = "an end inside a compressed message"
)

// rules are all the rules, in the order of the report.
var rules = []rule{ruleMasked, ruleRSV, ruleRSV23, ruleRSV1Late, ruleOpcode, ruleControl, ruleFragmented, ruleNothing, ruleNewMessage, ruleLong,
	ruleLongOfPing, ruleHuge, ruleTooBig, ruleBigWire, ruleNeverFits, ruleBigInflate, ruleText, ruleDeflate, ruleNoPayload, ruleFinalBlock,
	ruleClosed, ruleCode1014, ruleCode, ruleOneByte, ruleReason, ruleCloseIn, ruleEnd, ruleCut, ruleCutBetween, ruleCutDeflate}

// verdict is what must become of a stream.
type verdict struct {
	messages, pongs []string
	ends            []ending // the connection must end in one of these ways
	by              []rule   // the rules that end it
	early           bool     // a client that decompresses a message before all of it has come may have ended before the last pings
}

func (v verdict) String() string {
	return fmt.Sprintf("%d messages, %d pongs, then one of %v, for %q", len(v.messages), len(v.pongs), v.ends, v.by)
}

// judge reads a whole stream as the RFCs say, except that it ignores the rules that a client ignores.
type judge struct {
	conditions
	ignores func(rule) bool
	verdict

	inside   bool   // the first frame of a message has come, and its last frame has not
	deflated bool   // that message is compressed
	kind     int    // the opcode of that message
	payload  []byte // what has come of that message
	window   []byte // the messages that a compressed message may refer to, decompressed
}

// head is the header of a frame.
type head struct {
	fin, masked  bool
	rsv1, rsv23  bool
	op           int
	size         int    // the bytes of the header, mask key included
	length       uint64 // the bytes of the payload
	code         byte   // the 7 bits of the second byte that hold a short length, or 126 or 127
	known, whole bool   // known: all bytes of the length have come; whole: the whole frame has come
}

func parseHead(b []byte) (h head) {
	h = head{fin: b[0]&0x80 != 0, rsv1: b[0]&0x40 != 0, rsv23: b[0]&0x30 != 0, op: int(b[0] & 0xf), masked: b[1]&0x80 != 0, code: b[1] & 0x7f, size: 2}
	switch h.length = uint64(h.code); h.code {
	case 126:
		if h.size = 4; len(b) >= 4 {
			h.length, h.known = uint64(binary.BigEndian.Uint16(b[2:])), true
		}
	case 127:
		if h.size = 10; len(b) >= 10 {
			h.length, h.known = binary.BigEndian.Uint64(b[2:]), true
		}
	default:
		h.known = true
	}
	if h.masked {
		h.size += 4
	}
	h.whole = h.known && len(b) >= h.size && h.length <= uint64(len(b)-h.size)
	return h
}

// run judges a stream.
func (j *judge) run(b []byte) verdict {
	for j.by == nil {
		switch {
		case len(b) == 0 && !j.inside:
			j.end(ruleEnd, ending{class: "gone", said: none})
		case len(b) < 2:
			j.cut(nil)
		default:
			h := parseHead(b)
			if j.header(h, len(b)-h.size); j.by == nil && h.whole {
				j.frame(h, b[:h.size+int(h.length)])
				b = b[h.size+int(h.length):]
			} else if j.by == nil {
				if h.op < opClose && h.known {
					j.begin(h)
					j.cut(b[min(h.size, len(b)):])
				} else {
					j.cut(nil)
				}
			}
		}
	}
	return j.verdict
}

// end adds a rule that ends the connection, and the ways in which the connection may then end.
func (j *judge) end(by rule, ends ...ending) {
	j.by, j.ends = append(j.by, by), append(j.ends, ends...)
}

func (j *judge) refused(by rule, code int) { j.end(by, ending{class: "refused", said: code}) }

// cut adds that the bytes end inside a message or a frame. If it is a data frame, payload is the part of its payload that has come.
func (j *judge) cut(payload []byte) {
	j.gone(len(payload))
	j.payload = append(j.payload, payload...)
	j.inflateEarly()
}

// gone adds that the server hangs up inside a message or a frame, after that many bytes of the frame's payload.
func (j *judge) gone(came int) {
	by := ruleCut
	switch {
	case j.inside && j.deflated:
		by = ruleCutDeflate
	case j.inside && came <= 0:
		by = ruleCutBetween
	}
	j.end(by, ending{class: "gone", said: none})
}

// inflateEarly is called when the verdict ends inside a compressed message. A client may decompress a message
// before all of it has come, and so find an error earlier. inflateEarly adds these ends.
func (j *judge) inflateEarly() {
	if !j.inside || !j.deflated {
		return
	}
	j.early = true
	out, err := inflatePart(j.payload, j.window)
	if len(out) > limit && !j.ignores(ruleBigInflate) {
		// flate reads ahead, so a client may come to a later error of the stream, and send the close code for
		// that error, before it finds that the message is too big.
		for _, e := range j.ends {
			j.ends = append(j.ends, ending{class: "too big", said: e.said})
		}
		j.end(ruleBigInflate, ending{class: "too big", said: 1009})
	}
	switch {
	case err == nil:
		j.by = append(j.by, ruleFinalBlock)
	case err != io.ErrUnexpectedEOF:
		j.refused(ruleDeflate, 1007)
	}
}

// header ends the verdict if the header of a frame breaks rules. A client may refuse the frame for any of
// these rules. If the frame is not whole, a client may also wait for the rest of it, and find that the server
// has hung up; came is then the number of payload bytes that have come.
func (j *judge) header(h head, came int) {
	control := h.op >= opClose
	breaks := func(by rule, broken bool) {
		switch {
		case !broken || j.ignores(by):
		case by == ruleTooBig || by == ruleBigWire || by == ruleNeverFits:
			j.end(by, ending{class: "too big", said: 1009})
		default:
			j.refused(by, 1002)
		}
	}
	breaks(ruleMasked, h.masked)
	breaks(ruleRSV, !j.compressed && (h.rsv1 || h.rsv23))
	breaks(ruleRSV23, j.compressed && h.rsv23)
	breaks(ruleRSV1Late, h.rsv1 && j.compressed && (control || h.op == opContinuation))
	breaks(ruleOpcode, h.op > opBinary && h.op < opClose || h.op > opPong)
	breaks(ruleControl, control && h.code > maxControl && (!h.known || h.length > maxControl))
	breaks(ruleFragmented, control && !h.fin)
	breaks(ruleNothing, h.op == opContinuation && !j.inside)
	breaks(ruleNewMessage, (h.op == opText || h.op == opBinary) && j.inside)
	if h.known {
		long := h.code == 126 && h.length < 126 || h.code == 127 && h.length < 1<<16
		breaks(ruleLong, long && !control)
		breaks(ruleLongOfPing, long && control)
		breaks(ruleHuge, h.length>>63 != 0)
		continues := h.op == opContinuation
		deflated := !control && (continues && j.inside && j.deflated || !continues && j.compressed && h.rsv1)
		size := h.length
		if j.inside && continues {
			size += uint64(len(j.payload))
		}
		big := size > limit && h.length>>63 == 0
		breaks(ruleTooBig, big && !deflated && (!control || j.by != nil))
		breaks(ruleBigWire, big && deflated)
		breaks(ruleNeverFits, big && deflated && size > 2*limit+64<<10)
	}
	if j.by == nil {
		return
	}
	j.inflateEarly()
	if !h.whole {
		if !control && !j.inside { // a client that does not check the header has begun to read the message
			j.begin(h)
		}
		j.gone(came)
	}
}

// frame reads a whole frame.
func (j *judge) frame(h head, b []byte) {
	payload := b[h.size:]
	if h.masked && h.op >= opClose { // the judge comes here only for a client that accepts masked frames: see the table
		payload = slices.Clone(payload)
		for i := range payload {
			payload[i] ^= b[h.size-4+i%4]
		}
	}
	switch {
	case h.op == opPing:
		j.pongs = append(j.pongs, string(payload))
	case h.op == opClose:
		j.close(payload)
	case h.op == opPong:
	default:
		j.begin(h)
		if j.payload = append(j.payload, payload...); h.fin {
			j.message()
		}
	}
}

// begin begins a message, unless the frame is a continuation.
func (j *judge) begin(h head) {
	if h.op != opContinuation {
		j.inside, j.deflated, j.kind, j.payload = true, h.rsv1 && j.compressed, h.op, nil
	}
}

// close reads the payload of a close frame.
func (j *judge) close(payload []byte) {
	if j.inside && j.deflated {
		j.by = append(j.by, ruleCloseIn)
		defer j.inflateEarly()
	}
	if len(payload) == 0 {
		j.end(ruleClosed, ending{class: "closed", code: 1005, said: 0})
		return
	}
	if len(payload) == 1 {
		j.refused(ruleOneByte, 1002)
		return
	}
	code := int(binary.BigEndian.Uint16(payload))
	text := utf8.Valid(payload[2:])
	sendable := code >= 1000 && code <= 1014 && (code < 1004 || code > 1006) || code >= 3000 && code <= 4999
	if !sendable {
		j.refused(ruleCode, 1002)
	}
	refused := !text && j.checkUTF8 && !j.ignores(ruleReason)
	if refused {
		j.refused(ruleReason, 1007)
	}
	if sendable && !refused {
		by := ruleClosed
		switch {
		case code == 1014:
			by = ruleCode1014
		case !text:
			by = ruleReason
		}
		j.end(by, ending{class: "closed", code: code, said: code})
	}
}

// message ends a message whose last frame has come.
func (j *judge) message() {
	said := j.payload
	if j.deflated {
		out, broken := inflate(said, j.window)
		if len(out) > limit && !j.ignores(ruleBigInflate) {
			j.end(ruleBigInflate, ending{class: "too big", said: 1009})
		}
		if broken != "" && !j.ignores(broken) {
			j.refused(broken, 1007)
		}
		j.early = j.by != nil
		if said = out; j.takeover {
			j.window = append(j.window, out...)
		}
	}
	if j.by == nil && j.kind == opText && j.checkUTF8 && !utf8.Valid(said) && !j.ignores(ruleText) {
		j.refused(ruleText, 1007)
	}
	if j.inside = false; j.by == nil {
		j.messages = append(j.messages, message(j.kind, said))
	}
}

// inflate returns the decompressed message, and the rule that it breaks, or "". A sender ends a compressed
// message with an empty block, and leaves out the last four bytes of that block (RFC 7692, section 7.2.1).
// inflate adds these four bytes, and a block with a mark. The message is sound only if the mark comes out
// directly behind it.
func inflate(payload, window []byte) (out []byte, broken rule) {
	if len(payload) == 0 {
		return nil, ruleNoPayload
	}
	const tail, mark, marked = "\x00\x00\xff\xff", "mark", "\x01\x04\x00\xfb\xff" + "mark"
	out, err := inflatePart(payload, window)
	if err == nil && len(out) < most {
		return out, ruleFinalBlock
	}
	whole := flate.NewReaderDict(strings.NewReader(string(payload)+tail+marked), last(window))
	all, err := io.ReadAll(io.LimitReader(whole, most))
	switch {
	case len(all) == most:
		return out, ""
	case err == nil && string(all) == string(out): // the mark did not come out: the message has a final block
		return out, ruleFinalBlock
	case err != nil || string(all) != string(out)+mark:
		return out, ruleDeflate
	}
	return out, ""
}

const most = 20 * limit // decompression stops after so many bytes

// inflatePart decompresses a part of a compressed message.
func inflatePart(payload, window []byte) ([]byte, error) {
	return io.ReadAll(io.LimitReader(flate.NewReaderDict(bytes.NewReader(payload), last(window)), most))
}

// last returns the last 32 KiB of window: a compressed message cannot refer to more.
func last(window []byte) []byte { return window[max(0, len(window)-32<<10):] }
