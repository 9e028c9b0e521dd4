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

// rule is what a stream may break, or what else decides how a client ends.
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

// rules are all.
var rules = []rule{ruleMasked, ruleRSV, ruleRSV23, ruleRSV1Late, ruleOpcode, ruleControl, ruleFragmented, ruleNothing, ruleNewMessage, ruleLong,
	ruleLongOfPing, ruleHuge, ruleTooBig, ruleBigWire, ruleNeverFits, ruleBigInflate, ruleText, ruleDeflate, ruleNoPayload, ruleFinalBlock,
	ruleClosed, ruleCode1014, ruleCode, ruleOneByte, ruleReason, ruleCloseIn, ruleEnd, ruleCut, ruleCutBetween, ruleCutDeflate}

// verdict is what must become of a stream.
type verdict struct {
	messages, pongs []string
	ends            []ending // one of these
	by              []rule   // why it ends
	early           bool     // a client that inflates what it has may have ended before the last pings
}

func (v verdict) String() string {
	return fmt.Sprintf("%d messages, %d pongs, then one of %v, for %q", len(v.messages), len(v.pongs), v.ends, v.by)
}

// judge is a strict reader of a whole stream, for a client that ignores some of the rules.
type judge struct {
	conditions
	ignores func(rule) bool
	verdict

	inside, deflated bool   // a message is under way; it is compressed
	kind             int    // of that message
	payload          []byte // of that message
	window           []byte // what a compressed message may refer to
}

// head is the header of a frame.
type head struct {
	fin, masked  bool
	rsv1, rsv23  bool
	op           int
	size         int    // of the header, with the key
	length       uint64 // of the payload
	code         byte   // the length in 7 bits
	known, whole bool   // the length is there; the frame is
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

// end ends the verdict by a rule.
func (j *judge) end(by rule, ends ...ending) {
	j.by, j.ends = append(j.by, by), append(j.ends, ends...)
}

func (j *judge) refused(by rule, code int) { j.end(by, ending{class: "refused", said: code}) }

// cut ends it inside a message, with what has come of the payload of a data frame.
func (j *judge) cut(payload []byte) {
	j.gone(len(payload))
	j.payload = append(j.payload, payload...)
	j.inflateEarly()
}

// gone adds the end by a peer that hangs up inside a message or a frame, of whose payload so much came.
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

// inflateEarly adds the ends that a client which inflates what it has so far may have found before.
func (j *judge) inflateEarly() {
	if !j.inside || !j.deflated {
		return
	}
	j.early = true
	out, err := inflatePart(j.payload, j.window)
	if len(out) > limit && !j.ignores(ruleBigInflate) {
		for _, e := range j.ends { // flate reads ahead: the peer may have been told of what comes behind already
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

// header ends the verdict if the header of a frame breaks rules. A client may refuse it for any of
// them. If not all of the frame is there, but what came of the payload, a client may also wait for it.
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
		if !control && !j.inside { // who believes a length that is too large begins the message
			j.begin(h)
		}
		j.gone(came)
	}
}

// frame takes a whole frame.
func (j *judge) frame(h head, b []byte) {
	payload := b[h.size:]
	if h.masked && h.op >= opClose { // of a client that lets masks pass: see the table
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

// begin begins a message, unless the data frame continues one.
func (j *judge) begin(h head) {
	if h.op != opContinuation {
		j.inside, j.deflated, j.kind, j.payload = true, h.rsv1 && j.compressed, h.op, nil
	}
}

// close takes a close frame.
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

// message takes a whole message.
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

// inflate returns what a compressed message says, and which rule it breaks. The sender has left out
// the length of the last block, an empty one. So a mark behind that block comes out behind the
// message if all is well, and only then.
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
	case err == nil && string(all) == string(out): // the block behind the message was the last
		return out, ruleFinalBlock
	case err != nil || string(all) != string(out)+mark:
		return out, ruleDeflate
	}
	return out, ""
}

const most = 20 * limit // bytes that are inflated

// inflatePart returns what comes out of a part of a compressed message.
func inflatePart(payload, window []byte) ([]byte, error) {
	return io.ReadAll(io.LimitReader(flate.NewReaderDict(bytes.NewReader(payload), last(window)), most))
}

// last returns what a compressed message may refer to.
func last(window []byte) []byte { return window[max(0, len(window)-32<<10):] }
