package history

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// A server of a plan with Forms sends each message in one of the forms that its protocol allows, and breaks the protocol now and then.

// drawForms draws forms, from a stream of their own.
func (p *Plan) drawForms() {
	r := p.stream(14)
	s := &p.Settings
	if r.IntN(3) > 0 {
		return
	}
	s.Forms = true
	if r.IntN(2) == 0 {
		s.ReadLimit = []int{21_000, 32 << 10, 64<<10 - 1, 64 << 10, 100_000}[r.IntN(5)]
	}
	s.Prefix = r.IntN(3)
	if *s = s.possible(); !s.Forms {
		return
	}
	for range r.IntN(4) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), "wrong"})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// The prefixes of messages with Framing 2.
const (
	prefix4 = iota
	prefix2
	prefixVarint
)

// mostPrefix2 is the size of the largest message with prefix2.
const mostPrefix2 = 1<<16 - 1

// prefix returns the framer of a plan whose messages have their length before them.
func (s Settings) prefix() conn.LengthPrefix {
	return conn.LengthPrefix{Size: []int{0, 2, 0}[s.Prefix], Varint: s.Prefix == prefixVarint}
}

// withPrefix puts the length before a message.
func (s Settings) withPrefix(data string) []byte {
	switch s.Prefix {
	case prefix2:
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...)
	case prefixVarint:
		return append(binary.AppendUvarint(nil, uint64(len(data))), data...)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

// readPrefix reads the length before a message.
func (s Settings) readPrefix(in *bufio.Reader) (uint64, error) {
	var head [4]byte
	switch s.Prefix {
	case prefix2:
		_, err := io.ReadFull(in, head[:2])
		return uint64(binary.BigEndian.Uint16(head[:2])), err
	case prefixVarint:
		return binary.ReadUvarint(in)
	}
	_, err := io.ReadFull(in, head[:])
	return uint64(binary.BigEndian.Uint32(head[:])), err
}

// sizes are sizes of messages at which something may change: of a frame's length, of a buffer, of a piece of memory.
var sizes = []int{125, 126, 127, 512, 2048, 4095, 4096, 8192, 16 << 10, 32 << 10, 64<<10 - 1, 64 << 10}

// sized returns data with so many more bytes that its size is one of sizes or the limit of the plan, for some messages.
func (w *world) sized(data string, n int) string {
	most := w.set.ReadLimit
	if most == 0 {
		most = 64 << 10
	}
	size := len(data)
	switch {
	case n%5 == 0:
		size = sizes[n/5%len(sizes)]
	case n%23 == 0:
		size = most
	}
	if w.set.Prefix == prefix2 {
		most = min(most, mostPrefix2)
	}
	return data + strings.Repeat(data[len(data)-1:], max(0, min(size, most)-len(data)))
}

// form is the sender of a connection whose plan has Forms.
type form struct {
	w *world
	p *conntest.Pipe
}

// say sends a message, in a form that only the message decides. The caller has the turn.
func (f form) say(ctx context.Context, data string) error {
	defer context.AfterFunc(ctx, func() { f.p.Server().Close() })() // as coder/websocket does
	if f.breaksNow(data) {
		return nil
	}
	hash := fnv.New64a()
	hash.Write([]byte(data))
	r := rand.New(rand.NewPCG(f.w.plan.Seed, hash.Sum64()))
	if f.w.set.Framing != 0 {
		return f.pieces(r, f.frame(r, data))
	}
	payload, head := []byte(data), conntest.TextFrame
	if f.w.set.Compression && r.IntN(3) > 0 {
		payload, head = deflated(r, payload), conntest.TextFrame|rsv1
	}
	cuts := make([]int, r.IntN(5)*r.IntN(2)) // most messages have one frame
	for i := range cuts {
		cuts[i] = r.IntN(len(payload) + 1)
	}
	slices.Sort(cuts)
	from, slow := 0, r.IntN(4) == 0
	for _, to := range cuts {
		if err := f.write(conntest.Frame{Head: head, Payload: payload[from:to]}); err != nil {
			return err
		}
		head, from = 0, to
		if r.IntN(3) == 0 {
			if err := f.write(conntest.Frame{Head: conntest.Fin | pong, Payload: make([]byte, r.IntN(126))}); err != nil {
				return err
			}
		}
		f.rest(r, slow)
	}
	return f.write(conntest.Frame{Head: conntest.Fin | head, Payload: payload[from:]})
}

// Bits and opcodes of a frame.
const (
	rsv1 = 0x40
	ping = 0x9
	pong = 0xA
)

func (f form) write(frame conntest.Frame) error {
	_, err := f.p.Server().Write(frame.Bytes())
	return err
}

// rest may let some time pass inside a message.
func (f form) rest(r *rand.Rand, slow bool) {
	if d := upTo(r, 10*time.Millisecond); slow && !f.w.calmed.Load() {
		time.Sleep(d)
	}
}

// frame returns the frame of a message that is no WebSocket's.
func (f form) frame(r *rand.Rand, data string) []byte {
	if f.w.set.Framing == 2 {
		return f.w.set.withPrefix(data)
	}
	return []byte(data + []string{"\n", "\r\n"}[r.IntN(2)])
}

// pieces writes a frame in pieces.
func (f form) pieces(r *rand.Rand, frame []byte) error {
	slow := r.IntN(4) == 0
	for range r.IntN(3) {
		n := r.IntN(len(frame))
		if _, err := f.p.Server().Write(frame[:n]); err != nil {
			return err
		}
		frame = frame[n:]
		f.rest(r, slow)
	}
	_, err := f.p.Server().Write(frame)
	return err
}

// deflated returns a compressed message (RFC 7692, section 7.2.1) that refers to none before it: in blocks, of which many may be empty.
func deflated(r *rand.Rand, data []byte) []byte {
	var out bytes.Buffer
	to, _ := flate.NewWriter(&out, r.IntN(12)+flate.HuffmanOnly)
	many := false
	for range r.IntN(4) {
		n := r.IntN(len(data) + 1)
		to.Write(data[:n])
		data = data[n:]
		blocks := 1 + r.IntN(10)*r.IntN(2)*r.IntN(30)
		if r.IntN(60) == 0 && !many { // 12,000 of 5 bytes each, and no more: Limits.ReadLimit bounds the compressed form, too
			many, blocks = true, 12_000
		}
		for range blocks {
			to.Flush()
		}
	}
	to.Write(data)
	if r.IntN(4) == 0 { // with a last block (section 7.2.3.4)
		to.Close()
		return append(out.Bytes(), 0)
	}
	to.Flush()
	return bytes.TrimSuffix(out.Bytes(), []byte{0, 0, 0xff, 0xff})
}

// A wrong frame is an event: the next message of a connection breaks the protocol.

// breaks returns bytes that break the protocol, and the error by which the client must end the session: of the given code, or a
// TooBigError.
func (f form) breaks(r *rand.Rand) (data []byte, code int) {
	limit := f.w.set.ReadLimit
	text, whole := conntest.TextFrame, conntest.Fin|conntest.TextFrame
	frames := func(all ...conntest.Frame) (data []byte) {
		for _, one := range all {
			data = append(data, one.Bytes()...)
		}
		return data
	}
	some := make([]byte, r.IntN(100))
	if f.w.set.Framing != 0 {
		return f.frame(r, strings.Repeat("x", limit+1)), 1009
	}
	switch n := r.IntN(16); {
	case n == 0:
		return frames(conntest.Frame{Head: whole | 0x20, Payload: some}), 1002 // a bit that nobody has agreed on
	case n == 1:
		return frames(conntest.Frame{Head: conntest.Fin | byte(3+r.IntN(5)), Payload: some}), 1002 // an opcode of no meaning
	case n == 2:
		return frames(conntest.Frame{Head: whole, Payload: some, Mask: true}), 1002
	case n == 3:
		return frames(conntest.Frame{Head: ping, Payload: some}), 1002 // a ping in fragments
	case n == 4:
		return frames(conntest.Frame{Head: conntest.Fin | ping, Payload: make([]byte, 126+r.IntN(300))}), 1002
	case n == 5:
		return append([]byte{whole, 126, 0, byte(len(some))}, some...), 1002 // a length with more bytes than it needs
	case n == 6:
		return append(binary.BigEndian.AppendUint64([]byte{whole, 127}, uint64(len(some))), some...), 1002
	case n == 7:
		return binary.BigEndian.AppendUint64([]byte{whole, 127}, 1<<63), 1002
	case n == 8:
		return frames(conntest.Frame{Head: text, Payload: some}, conntest.Frame{Head: whole, Payload: some}), 1002 // a message in a message
	case n == 9:
		return frames(conntest.Frame{Head: conntest.Fin, Payload: some}), 1002 // the rest of no message
	case n == 10:
		return frames(conntest.Frame{Head: conntest.Fin | 0x8, Payload: []byte{3}}), 1002 // half a close code
	case n == 11:
		code := []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000}[r.IntN(9)]
		return frames(conntest.Frame{Head: conntest.Fin | 0x8, Payload: binary.BigEndian.AppendUint16(nil, code)}), 1002
	case n == 12 && f.w.set.Compression:
		return frames(conntest.Frame{Head: whole | rsv1, Payload: []byte{0x07, 0xff, 0xff}}), 1007 // a block of no type
	case limit == 0 || n == 12:
		return frames(conntest.Frame{Head: whole | 0x40 | 0x10, Payload: some}), 1002
	case n == 13:
		return frames(conntest.Frame{Head: whole, Payload: make([]byte, limit+1)}), 1009
	case n == 14 && f.w.set.Compression:
		return frames(conntest.Frame{Head: whole | rsv1, Payload: deflated(r, make([]byte, limit+1+r.IntN(1000)))}), 1009
	}
	half := r.IntN(limit)
	return frames(conntest.Frame{Head: text, Payload: make([]byte, half)}, conntest.Frame{Head: conntest.Fin, Payload: make([]byte, limit+1-half)}), 1009
}

// wrong is the event.
var wrong = happening{"wrong", 0, func(w *world, r *rand.Rand, e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongNext = r
}}

// breaksNow lets the connection break the protocol in the place of a message, or at once behind it, if an event asks for that. It reports
// whether it has: the server sends nothing more by this connection.
func (f form) breaksNow(message string) bool {
	w := f.w
	w.mu.Lock()
	rec, r := w.piped(f.p), cmp.Or(w.wrongNext, w.wrongEach)
	if rec.broken {
		w.mu.Unlock()
		return true
	}
	can := w.set.Framing == 0 || w.set.ReadLimit > 0 && (w.set.Prefix != prefix2 || w.set.ReadLimit < mostPrefix2) // too large a message
	if r == nil || w.calmed.Load() || !can {
		w.mu.Unlock()
		return false
	}
	w.wrongNext = nil
	data, code := f.breaks(r)
	if w.set.Framing == 0 && r.IntN(2) == 0 {
		data = append(conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte(message)}.Bytes(), data...)
	}
	rec.broken, rec.faults = true, append(rec.faults, fault{"wrong " + itoa(code), w.now()})
	w.remark("wrong %d", code)
	w.mu.Unlock()
	w.users.Go(func() { w.brokenEnds(f.p) })
	if _, err := f.p.Server().Write(data); err != nil { // the server has cut a connection that took too long
		w.mu.Lock()
		rec.faults = append(rec.faults, fault{"cut", w.now()})
		w.mu.Unlock()
	}
	return true
}

// brokenEndsIn is how long a session may live on when its peer has broken the protocol: a callback may take 4 s before the session is read,
// and the answer to a close frame 2 s.
const brokenEndsIn = 12 * time.Second

// brokenEnds requires that a session ends whose peer has broken the protocol now, if it is certainly read. It waits for that.
func (w *world) brokenEnds(p *conntest.Pipe) {
	at := w.now()
	w.pause(brokenEndsIn + 3*w.set.LoginTakes)
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.piped(p)
	s := w.of(rec.session)
	from := max(at, s.readyAt)
	if len(rec.faults) == 1 && w.closing == 0 && w.now()-from >= brokenEndsIn && w.readsFrom(from) {
		w.check(CauseIsTrue, s.lostAt >= 0, "session %d lives on after its peer has broken the protocol at %v", s.number, at)
	}
}

// readsFrom reports whether a session is certainly read from a time on, at which it was ready: there is a reader, and no rotation holds its
// messages. The caller holds w.mu.
func (w *world) readsFrom(at time.Duration) bool {
	discards := w.set.InboxOverflow == 1 || w.set.InboxOverflow == 3
	reader := discards || w.set.Reader != readLate && w.readPause <= at
	return reader && !w.rotating() && w.rotateDone <= at && !w.held && w.mayEnd == ""
}

// wrongCause checks the cause of the end of a session whose peer has broken the protocol, and has done nothing else. The caller holds w.mu.
func (w *world) wrongCause(s *session, rec *pipe, e reconnect.SessionDone) {
	broken := rec.faults[0]
	protocol, bad := errors.AsType[*conn.ProtocolError](e.Cause)
	_, big := errors.AsType[*conn.TooBigError](e.Cause)
	from := max(broken.at, s.readyAt)
	soon := w.now()-from <= w.set.Lag+time.Millisecond
	if unread := soon || !w.readsFrom(from) || w.slowProbe; unread && !bad && !big {
		switch e.Reason {
		case backoff.ReasonHangup, backoff.ReasonRefused, backoff.ReasonNetwork, backoff.ReasonProtocol, backoff.ReasonOther,
			backoff.ReasonCloseNormal, backoff.ReasonCloseRestart, backoff.ReasonCloseOverload, backoff.ReasonCloseOther:
		default: // a limit of ours
			return
		}
	}
	switch broken.kind {
	case "wrong 1009":
		w.check(CauseIsTrue, big, "%s: %v (%v)", broken.kind, e.Cause, e.Reason)
	default:
		w.check(CauseIsTrue, bad && broken.kind == "wrong "+itoa(protocol.CloseCode()), "%s: %v (%v)", broken.kind, e.Cause, e.Reason)
	}
	rec.refused = w.now()
}

// finishBroken checks that a server which has broken the protocol has read why: a close frame with 1002, or 1007 for what cannot be
// decompressed, or 1009 for too large a message (RFC 6455, section 7.4.1). coder/websocket sends 1002 for reserved bits, an opcode of no
// meaning, a control frame that is too long or in fragments, a bad close frame, and the rest of no message. All else is refused by
// package conn. The caller holds w.mu.
func (w *world) finishBroken() {
	for _, rec := range w.pipes {
		if w.set.Framing != 0 || rec.refused == 0 || len(rec.faults) != 1 || rec.stopped || w.closing-rec.refused < w.set.Lag+10*time.Millisecond {
			continue
		}
		w.check(CauseIsTrue, rec.faults[0].kind == "wrong "+itoa(rec.closed), "%s at %v, and session %d is closed with %d", rec.faults[0].kind, rec.faults[0].at, rec.session, rec.closed)
	}
}

// refusedAsBad checks whether the error of a message, or that it has none, fits to the message. The caller holds w.mu.
func (w *world) refusedAsBad(m *message, err error) {
	bad := m.bad || w.set.Prefix == prefix2 && len(m.out.Data) > mostPrefix2
	w.check(BadIsBad, bad && err != nil || !bad && !errors.Is(err, conn.ErrBadMessage), "%s of %d bytes: %v", m.id, len(m.out.Data), err)
}

// inject lets the server send a control frame, beside all else that it does, and reports whether it could.
func (w *world) inject(p *conntest.Pipe, frame conntest.Frame) bool {
	if w.set.Forms { // where a frame may be larger than the window
		_, err := p.Server().Write(frame.Bytes())
		return err == nil
	}
	p.Inject(conntest.ToClient, frame.Bytes())
	return true
}
