package readers

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
)

// stream is what a server sends to a client.
type stream struct {
	conditions
	frames [][]byte
	cuts   []int // the sizes of the pieces; empty: a piece is as large as the buffer of the reader
}

func (s stream) bytes() []byte { return slices.Concat(s.frames...) }

// writer makes a stream from random numbers.
type writer struct {
	*rand.Rand
	stream
	said []byte // the messages so far that were compressed, before compression
}

// newStream returns the stream of a seed. The stream has some messages, in fragments or whole, compressed or
// not, with control frames between the fragments; then an end of some kind. Most streams are damaged.
func newStream(seed uint64) stream {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 6455))}
	w.compressed = w.IntN(2) == 0
	w.takeover = w.compressed && w.IntN(2) == 0
	w.checkUTF8 = w.IntN(2) == 0
	for range w.IntN(5) {
		w.message()
	}
	switch w.IntN(4) {
	case 0: // the server hangs up
	case 1:
		w.add(0x80|opClose, nil)
	default:
		w.add(0x80|opClose, w.goodbye())
		w.maybe(4, w.message)
		w.maybe(4, w.control)
	}
	for range w.IntN(3) {
		w.damage()
	}
	w.maybe(8, w.cutEnd)
	for range w.IntN(4) {
		w.cuts = append(w.cuts, 1+w.IntN([]int{1, 4, 20, 200, 3000}[w.IntN(5)]))
	}
	return w.stream
}

func (w *writer) maybe(one int, f func()) {
	if w.IntN(one) == 0 {
		f()
	}
}

// add adds a frame of the shortest form.
func (w *writer) add(first byte, payload []byte) {
	w.frames = append(w.frames, frame(first, payload))
}

func frame(first byte, payload []byte) []byte {
	switch n := len(payload); {
	case n <= maxControl:
		return append([]byte{first, byte(n)}, payload...)
	case n < 1<<16:
		return append(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(n)), payload...)
	default:
		return append(binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(n)), payload...)
	}
}

// message adds a message, with control frames between its fragments.
func (w *writer) message() {
	payload, first := w.payload(), byte(opText+w.IntN(2))
	if w.compressed && w.IntN(3) > 0 {
		payload, first = w.deflated(payload), first|0x40
	}
	w.maybe(4, w.control)
	for n := w.IntN(4); n > 0; n-- {
		at := w.IntN(len(payload) + 1)
		w.add(first, payload[:at])
		payload, first = payload[at:], opContinuation
		w.maybe(3, w.control)
	}
	w.add(0x80|first, payload)
}

// payload draws the payload of a message.
func (w *writer) payload() []byte {
	size := []int{0, 1, w.IntN(20), maxControl, 126, 127, w.IntN(300), w.IntN(3000), limit, limit + 1, 20000}[w.pick(20, 10, 60, 5, 5, 5, 60, 20, 3, 2, 1)]
	switch w.IntN(3) {
	case 0:
		words := []string{"price ", "17.25 ", "привет ", "κόσμε ", "日本 ", "😀 ", "ask ", "bid "}
		var b []byte
		for len(b) < size {
			b = append(b, words[w.IntN(len(words))]...)
		}
		return b[:min(len(b), limit)] // the cut may be inside a rune
	case 1:
		return bytes.Repeat([]byte{byte('a' + w.IntN(26))}, size)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(w.Uint32())
	}
	return b
}

// pick draws an index; the probability of each is proportional to its weight.
func (w *writer) pick(weights ...int) int {
	sum := 0
	for _, n := range weights {
		sum += n
	}
	at := w.IntN(sum)
	for i, n := range weights {
		if at -= n; at < 0 {
			return i
		}
	}
	panic("unreachable")
}

// deflated compresses a message. With context takeover the result may refer to the messages before.
func (w *writer) deflated(payload []byte) []byte {
	var b bytes.Buffer
	var before []byte
	if w.takeover {
		before = w.said[max(0, len(w.said)-32<<10):]
	}
	f, _ := flate.NewWriterDict(&b, w.IntN(10), before)
	if len(payload) > 0 {
		_, _ = f.Write(payload[:len(payload)/2])
		w.maybe(3, func() { _ = f.Flush() })
		_, _ = f.Write(payload[len(payload)/2:])
	}
	_ = f.Flush()
	if w.takeover {
		w.said = append(w.said, payload...)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{0, 0, 0xff, 0xff})
}

// control adds a ping or a pong.
func (w *writer) control() {
	size := []int{0, w.IntN(maxControl + 1), maxControl}[w.IntN(3)]
	w.add(0x80|byte(opPing+w.IntN(2)), []byte(strings.Repeat("p", size)))
}

// goodbye draws the payload of a close frame.
func (w *writer) goodbye() []byte {
	codes := []int{1000, 1000, 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
		0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535}
	b := binary.BigEndian.AppendUint16(nil, uint16(codes[w.IntN(len(codes))]))
	switch w.IntN(8) {
	case 0:
		return b[:1]
	case 1:
		return append(b, "bye \xff\xfe"...)
	case 2:
		return append(b, strings.Repeat("r", 123)...)
	case 3:
		return append(b, "пока"...)
	}
	return b
}

// damage changes a frame, or the order of frames.
func (w *writer) damage() {
	if len(w.frames) == 0 {
		w.add(0x80|opText, nil)
	}
	at := w.IntN(len(w.frames))
	f := slices.Clone(w.frames[at])
	if len(f) < 2 || parseHead(f).size > len(f) { // damaged already
		return
	}
	replace := func(by ...[]byte) { w.frames = slices.Replace(w.frames, at, at+1, by...) }
	switch payload := f[parseHead(f).size:]; w.IntN(12) {
	case 0: // flip a bit of the first byte: FIN, RSV or opcode
		f[0] ^= 1 << w.IntN(8)
		replace(f)
	case 1: // flip a bit of the second byte: mask or length
		f[1] ^= 1 << w.IntN(8)
		replace(f)
	case 2: // mask the frame, as only a client may
		head, key := f[:len(f)-len(payload)], []byte{1, 2, 3, byte(w.IntN(256))}
		head[1] |= 0x80
		for i := range payload {
			payload[i] ^= key[i%4]
		}
		replace(slices.Concat(head, key, payload))
	case 3: // write the length with more bytes than it needs, or set its first bit
		long := binary.BigEndian.AppendUint64([]byte{f[0], 127}, uint64(len(payload))|uint64(w.IntN(2))<<63)
		if w.IntN(2) == 0 && len(payload) < 1<<16 {
			long = binary.BigEndian.AppendUint16([]byte{f[0], 126}, uint16(len(payload)))
		}
		replace(append(long, payload...))
	case 4: // a length without a payload
		replace(binary.BigEndian.AppendUint64([]byte{f[0], 127}, 1<<w.IntN(64)))
	case 5: // leave the frame out
		replace()
	case 6: // send the frame twice
		replace(f, f)
	case 7: // let the frame and another change places
		other := w.IntN(len(w.frames))
		w.frames[at], w.frames[other] = w.frames[other], w.frames[at]
	case 8: // add a control frame that is too long, or one in fragments
		if w.IntN(2) == 0 {
			replace(f, frame(0x80|opPing, make([]byte, 126+w.IntN(200))))
		} else {
			replace(f, frame(opPing, nil), frame(0x80, nil))
		}
	case 9: // flip a bit of the payload
		if len(payload) > 0 {
			payload[w.IntN(len(payload))] ^= 1 << w.IntN(8)
			replace(f)
		}
	case 10: // cut the payload, and correct the length
		replace(frame(f[0], payload[:w.IntN(len(payload)+1)]))
	case 11: // add random bytes
		junk := make([]byte, w.IntN(30))
		for i := range junk {
			junk[i] = byte(w.Uint32())
		}
		replace(f, junk)
	}
}

// cutEnd lets the server hang up inside a frame. If there is a frame of more than 600 bytes, that is after
// 512 bytes of its payload, where the first read of io.ReadAll ends; else anywhere in the last frame.
func (w *writer) cutEnd() {
	large := slices.IndexFunc(w.frames, func(f []byte) bool { return len(f) > 600 })
	switch {
	case large >= 0:
		f := w.frames[large]
		w.frames = append(w.frames[:large], f[:min(len(f), parseHead(f).size+512)])
	case len(w.frames) > 0:
		last := len(w.frames) - 1
		w.frames[last] = w.frames[last][:w.IntN(len(w.frames[last])+1)]
	}
}
