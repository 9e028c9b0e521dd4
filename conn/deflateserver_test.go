package conn

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// deflateServer is a server on loopback that runs the case whose index is the path. It
// compresses with package compress/flate alone.
type deflateServer struct {
	addr    string
	cases   []deflateCase
	results chan deflateResult // of each case, in turn
}

// deflateResult is what a server has seen of a client.
type deflateResult struct {
	offer, answer string // Sec-WebSocket-Extensions of the request and of the response
	compressed    int    // messages that the client has sent compressed
	close         string // the close frame of the client
	err           error  // if a message did not come back as it was sent
}

func startDeflateServer(t *testing.T, cases []deflateCase) *deflateServer {
	s := &deflateServer{cases: cases, results: make(chan deflateResult, len(cases))}
	s.addr = serveInTurn(t, func(nc net.Conn) { s.results <- s.serve(nc) })
	return s
}

// serve sends the messages of a case, each after the answer to the last.
func (s *deflateServer) serve(nc net.Conn) (got deflateResult) {
	r := bufio.NewReader(nc)
	index, err := upgrade(nc, r, func(offer string) string {
		got.offer, got.answer = offer, s.cases[0].accept(offer) // which all cases have in common
		return got.answer
	})
	if err != nil {
		got.err = err
		return got
	}
	c := s.cases[index]
	p := newPeerDeflate(got.answer)
	for i := range c.count() {
		nc.SetDeadline(time.Now().Add(time.Minute)) // for each message
		if got.err = p.echoed(nc, r, c, c.message(i)); got.err != nil {
			got.err = fmt.Errorf("message %d: %w", i, got.err)
			return got
		}
	}
	got.compressed = p.compressed
	_, _ = io.WriteString(nc, goodbye)
	first, payload, err := readSent(r)
	got.close, got.err = said(first&0xf, string(payload)), err
	_, _ = r.ReadByte() // until the client hangs up
	return got
}

// peerDeflate is both directions of the extension at a server (RFC 7692, section 7.2).
type peerDeflate struct {
	agreed     bool
	out        *flate.Writer
	sent       bytes.Buffer
	outAnew    bool // server_no_context_takeover
	in         io.ReadCloser
	inAnew     bool   // client_no_context_takeover
	window     []byte // what the client may refer to
	compressed int
}

func newPeerDeflate(answer string) *peerDeflate {
	p := &peerDeflate{agreed: answer != "", in: flate.NewReader(strings.NewReader(""))}
	p.out, _ = flate.NewWriter(&p.sent, flate.DefaultCompression) // level 6, as the suite has it
	p.outAnew = strings.Contains(answer, "server_no_context_takeover")
	p.inAnew = strings.Contains(answer, "client_no_context_takeover")
	return p
}

// echoed sends a message and waits until it comes back.
func (p *peerDeflate) echoed(nc net.Conn, r *bufio.Reader, c deflateCase, message string) error {
	first, payload := c.op, message
	if p.agreed {
		first, payload = first|rsv1, p.deflate(message)
	}
	fragment := c.fragment
	if fragment == 0 {
		fragment = len(payload)
	}
	if _, err := io.WriteString(nc, inFragments(first, payload, fragment)); err != nil {
		return err
	}
	first, payload, err := p.readMessage(r)
	switch {
	case err != nil:
		return err
	case first != c.op:
		return fmt.Errorf("a message of opcode %d", first)
	case payload != message:
		return fmt.Errorf("%s, and not %s", said(first, payload), said(first, message))
	}
	return nil
}

// readMessage reads a message of the client, without the RSV1 in its opcode.
func (p *peerDeflate) readMessage(r *bufio.Reader) (op byte, message string, err error) {
	first, all, err := readSent(r)
	for last := first; err == nil && last&fin == 0; {
		var more []byte
		if last, more, err = readSent(r); last&^fin != opContinuation {
			return 0, "", fmt.Errorf("a frame that begins with %#x inside a message", last)
		}
		all = append(all, more...)
	}
	if err != nil || first&rsv1 == 0 {
		return first &^ fin, string(all), err
	}
	if !p.agreed {
		return 0, "", errors.New("a compressed message, though the server has declined")
	}
	p.compressed++
	message, err = p.inflate(all)
	return first &^ (fin | rsv1), message, err
}

// deflate returns the payload of a compressed message.
func (p *peerDeflate) deflate(message string) string {
	p.sent.Reset()
	if p.outAnew {
		p.out.Reset(&p.sent)
	}
	_, _ = io.WriteString(p.out, message)
	_ = p.out.Flush()
	return strings.TrimSuffix(p.sent.String(), deflateTail)
}

// inflate returns the message that has this payload. Behind the tail comes a last block,
// which is empty, so that package flate finds an end.
func (p *peerDeflate) inflate(payload []byte) (string, error) {
	blocks := append(payload, deflateTail+"\x01\x00\x00\xff\xff"...)
	if err := p.in.(flate.Resetter).Reset(bytes.NewReader(blocks), p.window); err != nil {
		return "", err
	}
	message, err := io.ReadAll(p.in)
	if !p.inAnew {
		p.window = append(p.window, message...)
		p.window = p.window[max(0, len(p.window)-32<<10):]
	}
	return string(message), err
}

// filled returns n bytes of what part returns.
func filled(n int, part func(random *rand.Rand) string) string {
	random := rand.New(rand.NewPCG(uint64(n), 12))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(part(random))
	}
	return b.String()[:n]
}

func jsonData(n int) string {
	return filled(n, func(r *rand.Rand) string {
		return fmt.Sprintf("{\"id\": %d, \"guid\": \"%016x\", \"active\": %t, \"about\": %q},\n", r.IntN(1000), r.Uint64(), r.IntN(2) == 0, prose(100, r.Uint64()))
	})
}

func htmlData(n int) string {
	return filled(n, func(r *rand.Rand) string {
		return fmt.Sprintf("<div class=\"row-%d\"><a href=\"/page/%d\">%s</a></div>\n", r.IntN(9), r.IntN(1e6), prose(60, r.Uint64()))
	})
}

// picture is grey that changes little from one dot to the next.
func picture(n int) string {
	grey := 128
	return filled(n, func(r *rand.Rand) string {
		grey += r.IntN(7) - 3
		return string([]byte{byte(grey)})
	})
}

// document is streams that cannot be compressed, with some text between.
func document(n int) string {
	return filled(n, func(r *rand.Rand) string {
		stream := make([]byte, 4000)
		for i := range stream {
			stream[i] = byte(r.Uint32())
		}
		return "endstream\nendobj\n<< /Filter /FlateDecode >>\nstream\n" + prose(300, r.Uint64()) + string(stream)
	})
}
