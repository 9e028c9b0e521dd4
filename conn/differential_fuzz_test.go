package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// FuzzLikeCoder gives the same bytes, in the same pieces, to coder/websocket and to
// a WebSocket. Both must read the same messages, end for the same reason, and
// write the same pongs and close frames. Where we are stricter on purpose, see stricter.
// Whether the stream ends inside a message, or has one that is too large, is also compared
// to what a simple walk over its frames finds.
func FuzzLikeCoder(f *testing.F) {
	for way := range byte(ways) {
		for i, c := range plainFrames {
			f.Add([]byte(c.sends), [][]byte{{0, 3, 200}, {}}[i%2], 3*way)
		}
		for _, c := range append(compressedFrames, takeoverFrames...) {
			if len(c.sends) < 5000 {
				f.Add([]byte(c.sends), []byte{5}, 3*way+1)
				f.Add([]byte(c.sends+hello+frame(fin|rsv1|text, unhex("f200110000"))), []byte{}, 3*way+2)
			}
		}
		for _, length := range []string{"7fffffffffffffff", "0000000080000000"} { // huge
			f.Add([]byte(tail+tail+"\x82\x7f"+unhex(length)+goodbye), []byte{}, 3*way)
		}
		f.Add([]byte(tail+strings.Repeat(frame(fin|ping, "1")+frame(fin|pong, "2"), 3)+tail+frame(fin|ping, "3")+goodbye), []byte{}, 3*way)
		f.Add([]byte(tail+frame(fin|ping, "1")+tail+frame(fin|ping, "2")+frame(text, "a")+goodbye+tail), []byte{}, 3*way)
	}
	f.Fuzz(func(t *testing.T, data, cuts []byte, kind byte) {
		c := newComparison(data, cuts, kind)
		ours, coders := c.readOurs(t), c.readCoders(t)
		c.judge(t, ours)
		if c.compressed && hasFinalBlock(data) { // behind one coder/websocket loses its place
			return
		}
		if ours.same(coders) || c.closing && ours.within(coders) {
			return
		}
		if why := stricter(ours, coders, c.compressed); why == "" {
			t.Fatalf("ours:   %v\ncoder's: %v", ours, coders)
		}
	})
}

// comparison is what is compared, and how we read.
type comparison struct {
	data, cuts []byte
	mode       websocket.CompressionMode
	compressed bool
	read       func(c *WebSocket) (Message, error)
	write      bool // while we read
	closing    bool // while we read
	closeAfter int  // messages; -1: never
}

// ways is how many ways to read newComparison knows.
const ways = 9

func newComparison(data, cuts []byte, kind byte) *comparison {
	c := &comparison{data: data, cuts: cuts, closeAfter: -1, compressed: kind%3 != 0}
	c.mode = []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionNoContextTakeover, websocket.CompressionContextTakeover}[kind%3]
	buf := make([]byte, 4096)
	c.read = func(c *WebSocket) (Message, error) { return c.Read(nil) }
	switch way := int(kind/3) % ways; way {
	case 1:
		c.read = func(c *WebSocket) (Message, error) { return c.Read(buf[:0:3]) }
	case 2:
		c.read = func(c *WebSocket) (Message, error) { return c.Read(buf) }
	case 3:
		c.read = func(c *WebSocket) (Message, error) {
			return c.ReadBuffer(func(size int) []byte { return buf[:0:min(size/2, len(buf))] })
		}
	case 4:
		c.write = true
	case 5, 6, 7:
		c.closeAfter = way - 5
	case 8:
		c.closing = true
	}
	return c
}

// reading is what became of a stream.
type reading struct {
	messages []string
	end      string // kindOf the error, or "closed" if we closed the connection
	why      error
	wrote    []string // pongs and the close frame
}

func (r reading) String() string {
	return fmt.Sprintf("%q, then %s (%v); wrote %q", r.messages, r.end, r.why, r.wrote)
}

// wordless returns what was written without the reason of a close frame for a broken rule, which we word in
// our own way.
func wordless(wrote []string) (same []string) {
	for _, w := range wrote {
		for _, code := range []string{"close 03ea", "close 03f1"} {
			if strings.HasPrefix(w, code) {
				w = code
			}
		}
		same = append(same, w)
	}
	return same
}

func (r reading) same(o reading) bool {
	return slices.Equal(r.messages, o.messages) && r.end == o.end && slices.Equal(wordless(r.wrote), wordless(o.wrote))
}

// within reports whether what we read and answered before our own Close is what
// coder/websocket read and answered. Our close frame is the last that was sent; there is
// none if the connection had ended before.
func (r reading) within(o reading) bool {
	answers, closed := r.wrote, false
	if n := len(answers) - 1; n >= 0 && strings.HasPrefix(answers[n], "close") {
		answers, closed = answers[:n], true
	}
	return len(r.messages) <= len(o.messages) && slices.Equal(r.messages, o.messages[:len(r.messages)]) &&
		len(answers) <= len(o.wrote) && slices.Equal(answers, o.wrote[:len(answers)]) &&
		(closed || !errors.Is(r.why, net.ErrClosed))
}

// stricter returns why ours may differ from what coder/websocket made of a stream, ""
// if it may not. Whatever we refuse, all before it must have been the same.
func stricter(ours, coders reading, compressed bool) string {
	if coders.end == "panic" {
		return "a close frame inside a compressed message, at which coder/websocket v1.8.15 panics"
	}
	before := len(ours.messages)
	if len(coders.messages) < before || !slices.Equal(ours.messages, coders.messages[:before]) {
		return ""
	}
	pongs := slices.DeleteFunc(slices.Clone(ours.wrote), func(s string) bool { return strings.HasPrefix(s, "close") })
	if len(coders.wrote) < len(pongs) || !slices.Equal(pongs, coders.wrote[:len(pongs)]) {
		return ""
	}
	var protocol *ProtocolError
	switch {
	case errors.As(ours.why, &protocol) && slices.Contains([]error{errMasked, errHugeLength, errLongLength}, protocol.Err):
		return protocol.Error()
	case errors.As(ours.why, &protocol) && protocol.code == codeBadData && compressed:
		return "compression that does not end as it should, which coder/websocket takes for whole, or reads on in the middle of"
	case ours.end == "cut" && len(coders.messages) == before && coders.end == "end":
		return "an end in a header, which coder/websocket does not tell from one between messages"
	case ours.end == "cut" && len(coders.messages) == before+1:
		return "an end inside a message, which coder/websocket takes for the end of the message"
	case ours.end == "too big" && coders.end == "protocol" && compressed:
		return "a compressed length that no message within the limit needs, which coder/websocket inflates"
	case ours.end == "too big" && (coders.end == "cut" || len(coders.messages) == before+1):
		return "a length over the limit, which coder/websocket believes when so much has come"
	}
	return ""
}

// judge compares how we say that a stream has ended to what a walk over it finds.
func (c *comparison) judge(t *testing.T, r reading) {
	frames, rest, largest := walk(c.data)
	switch {
	case r.end == "closed":
		if found, known := answered(frames, c.closeAfter); known && found != (r.why == nil) {
			t.Fatalf("the answer to Close was there: %v, but %v", found, r)
		}
	case r.end == "end" || r.end == "cut":
		inside := rest > 0
		for _, f := range frames {
			if f.op < close8 {
				inside = rest > 0 || !f.fin
			}
		}
		if inside != (r.end == "cut") {
			t.Fatalf("inside a message: %v, but %v", inside, r)
		}
	}
	if tooBig := r.end == "too big"; !c.compressed && (tooBig || r.end == "end" || r.end == "cut") && tooBig != (largest > fuzzedLimit) {
		t.Fatalf("a message of %d bytes, but %v", largest, r)
	}
}

const fuzzedLimit = 2000

func (c *comparison) readOurs(t *testing.T) (r reading) {
	l := &link{wire: new(Wire)}
	ws := l.shakeHands(t, c.mode, func(nc net.Conn) net.Conn { return l.wire.Tap(&pieces{Conn: nc, cuts: c.cuts}) }, l.wire.Transport)
	var err error
	l.WebSocket, err = NewWebSocket(ws, l.wire, &WebSocketOptions{Limits: Limits{ReadLimit: fuzzedLimit}})
	require.NoError(t, err)
	written, pinged, closed := func() int { return 0 }, func() error { return nil }, func() error { return nil }
	if c.write {
		written, pinged = background(l.chatter), background(func() error { return l.Ping(context.Background()) })
	}
	l.send(string(c.data))
	l.raw.reset(io.EOF)
	if c.closing {
		closed = background(l.bye)
	}
	for r.why == nil && len(r.messages) != c.closeAfter {
		var m Message
		if m, r.why = c.read(l.WebSocket); r.why == nil {
			r.messages = append(r.messages, fmt.Sprintf("%d%s", m.Type, m.Data))
		}
	}
	if r.end = kindOf(r.why); r.why == nil {
		r.end, r.why = "closed", l.bye()
	}
	_ = closed()
	l.wire.stream.out.settle(closeLimit)
	l.CloseNow()
	whole := written()
	_ = pinged()
	var data []string
	r.wrote, data = wrote(l.raw.in.data)
	if len(data) < whole || !slices.Equal(data, chatter[:len(data)]) {
		t.Fatalf("of %d messages these were written: %q", whole, data)
	}
	return r
}

// chatter is what we write while we read.
var chatter = strings.Fields("a b c d e f g h i j k l m n o p q r s t")

// chatter writes until that fails, and returns how many messages it has written.
func (l *link) chatter() int {
	for i, said := range chatter {
		if l.Write(TextMessage(said)) != nil {
			return i
		}
	}
	return len(chatter)
}

func (c *comparison) readCoders(t *testing.T) (r reading) {
	l, ws := coders(t, c.mode, func(nc net.Conn) net.Conn { return &pieces{Conn: nc, cuts: c.cuts} })
	ws.SetReadLimit(fuzzedLimit)
	l.send(string(c.data))
	l.raw.reset(io.EOF)
	defer func() {
		if recover() != nil {
			r.end = "panic"
		}
	}()
	for r.why == nil && len(r.messages) != c.closeAfter {
		var kind websocket.MessageType
		var data []byte
		if kind, data, r.why = ws.Read(context.Background()); r.why == nil {
			r.messages = append(r.messages, fmt.Sprintf("%d%s", kind, data))
		}
	}
	r.end = coderKind(r.why)
	if r.why == nil {
		r.end = "closed"
		r.why = ws.Close(websocket.StatusNormalClosure, "bye")
	}
	r.wrote, _ = wrote(l.raw.in.data)
	return r
}

// coderKind is kindOf for an error of coder/websocket.
func coderKind(err error) string {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		return fmt.Sprint("close ", int(closed.Code))
	case errors.Is(err, websocket.ErrMessageTooBig):
		return "too big"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	case errors.Is(err, io.EOF):
		return "end"
	}
	return "protocol"
}

// pieces is a connection that is read in pieces whose sizes cuts says again and again.
type pieces struct {
	net.Conn
	cuts []byte
	next int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.cuts) > 0 {
		size := 1 + int(p.cuts[p.next%len(p.cuts)])
		p.next++
		b = b[:min(size, len(b))]
	}
	return p.Conn.Read(b)
}
