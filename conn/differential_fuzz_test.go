package conn

import (
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// FuzzLikeCoder gives the same bytes, in the same pieces, to coder/websocket alone and to
// a WebSocket over it. Both must read the same messages, end for the same reason, and
// write the same pongs and close codes. Where we are stricter on purpose, see stricter.
func FuzzLikeCoder(f *testing.F) {
	for _, c := range plainFrames {
		f.Add([]byte(c.sends), []byte{0, 3, 200}, byte(0))
	}
	for _, c := range compressedFrames {
		if len(c.sends) < 5000 {
			f.Add([]byte(c.sends), []byte{5}, byte(1))
			f.Add([]byte(c.sends+hello+frame(fin|rsv1|text, unhex("f200110000"))), []byte{}, byte(2))
		}
	}
	f.Fuzz(func(t *testing.T, data, cuts []byte, kind byte) {
		mode := []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionNoContextTakeover, websocket.CompressionContextTakeover}[kind%3]
		ours, coders := readOurs(t, data, cuts, mode), readCoders(t, data, cuts, mode)
		if ours.same(coders) || kind%3 != 0 && hasFinalBlock(data) { // behind one coder/websocket loses its place
			return
		}
		if why := stricter(ours, coders, kind%3 != 0); why == "" {
			t.Fatalf("ours:   %v\ncoder's: %v", ours, coders)
		}
	})
}

// reading is what became of a stream.
type reading struct {
	messages []string
	end      string // kindOf the error
	why      error
	wrote    []string // pongs, and the code of the close frame
}

func (r reading) String() string {
	return fmt.Sprintf("%q, then %s (%v); wrote %q", r.messages, r.end, r.why, r.wrote)
}

func (r reading) same(o reading) bool {
	return slices.Equal(r.messages, o.messages) && r.end == o.end && slices.Equal(r.wrote, o.wrote)
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
	case errors.As(ours.why, &protocol) && slices.Contains([]error{errMasked, errLongLength, errReason}, protocol.Err):
		return protocol.Error()
	case errors.As(ours.why, &protocol) && protocol.Code == codeBadData:
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

const fuzzedLimit = 2000

func readOurs(t *testing.T, data, cuts []byte, mode websocket.CompressionMode) (r reading) {
	l := &link{wire: new(Wire)}
	ws := l.shakeHands(t, mode, func(nc net.Conn) net.Conn { return l.wire.Tap(&pieces{Conn: nc, cuts: cuts}) }, l.wire.Transport)
	l.WebSocket = NewWebSocket(ws, l.wire, &WebSocketOptions{Limits: Limits{ReadLimit: fuzzedLimit}})
	l.send(string(data))
	l.raw.reset(io.EOF)
	for r.why == nil {
		var m Message
		if m, r.why = l.Read(nil); r.why == nil {
			r.messages = append(r.messages, fmt.Sprintf("%d%s", m.Type, m.Data))
		}
	}
	l.wire.stream.out.settle()
	l.CloseNow()
	r.end, r.wrote = kindOf(r.why), wrote(l.raw.in.data)
	return r
}

func readCoders(t *testing.T, data, cuts []byte, mode websocket.CompressionMode) (r reading) {
	l := new(link)
	ws := l.shakeHands(t, mode, func(nc net.Conn) net.Conn { return &pieces{Conn: nc, cuts: cuts} }, func(rt http.RoundTripper) http.RoundTripper { return rt })
	l.WebSocket = NewWebSocket(ws, nil, nil) // for the cleanup
	ws.SetReadLimit(fuzzedLimit)
	l.send(string(data))
	l.raw.reset(io.EOF)
	defer func() {
		if recover() != nil {
			r.end = "panic"
		}
	}()
	for r.why == nil {
		var kind websocket.MessageType
		var data []byte
		if kind, data, r.why = ws.Read(context.Background()); r.why == nil {
			r.messages = append(r.messages, fmt.Sprintf("%d%s", kind, data))
		}
	}
	r.end, r.wrote = coderKind(r.why), wrote(l.raw.in.data)
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

// wrote returns the pongs and the close code among what a client has sent.
func wrote(sent []byte) (all []string) {
	for len(sent) > 0 {
		first, size := sentFrame(sent)
		payload := unmasked(slices.Clone(sent[:size]))
		if first == fin|close8 {
			payload = fmt.Sprintf("close %x", payload[:min(2, len(payload))])
		}
		all, sent = append(all, payload), sent[size:]
	}
	return all
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
