package conn

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// fuzzer is a server on loopback that runs the case whose index is the path.
type fuzzer struct {
	addr  string
	cases []autobahn
	said  chan []string // by the client of each case, in turn
}

func startFuzzer(t *testing.T, cases []autobahn) *fuzzer {
	s := &fuzzer{cases: cases, said: make(chan []string, 1)}
	s.addr = serveInTurn(t, s.serve)
	return s
}

// serveInTurn gives each connection to serve, one after the other, and returns the address.
func serveInTurn(t *testing.T, serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serve(nc)
			nc.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-served })
	return l.Addr().String()
}

// upgrade makes the handshake of a server by hand. It returns the path of the request as a
// number. If accept is not nil, accept returns the extension for the client's offer.
func upgrade(nc net.Conn, r *bufio.Reader, accept func(offer string) string) (index int, err error) {
	nc.SetDeadline(time.Now().Add(time.Minute)) // so that nothing hangs
	request, err := http.ReadRequest(r)
	if err != nil {
		return 0, err
	}
	extension := ""
	fmt.Sscanf(request.URL.Path, "/%d", &index)
	if accept != nil {
		if extension = accept(request.Header.Get("Sec-WebSocket-Extensions")); extension != "" {
			extension = "Sec-WebSocket-Extensions: " + extension + "\r\n"
		}
	}
	key := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n%sSec-WebSocket-Accept: %s\r\n\r\n",
		extension, base64.StdEncoding.EncodeToString(key[:]))
	return index, err
}

// serve makes the handshake by hand and takes the steps of the case, while it notes what
// the client sends.
func (s *fuzzer) serve(nc net.Conn) {
	r := bufio.NewReader(nc)
	index, err := upgrade(nc, r, nil)
	if err != nil {
		return
	}
	c := s.cases[index]
	heard := make(chan string, len(c.wants())+10)
	go clientSays(r, heard) // the last loop waits for it
	var all []string
	for _, step := range c.steps {
		for _, part := range c.parts(step.sends) {
			if _, err := io.WriteString(nc, part); err != nil {
				break // the client has hung up
			}
		}
		for range step.wants {
			if item, ok := <-heard; ok {
				all = append(all, item)
			}
		}
	}
	for item := range heard { // until the client hangs up
		all = append(all, item)
	}
	s.said <- all
}

// parts returns what is written at once.
func (c autobahn) parts(sends string) (all []string) {
	for len(sends) > 0 {
		n := c.chop
		switch n {
		case 0:
			n = len(sends)
		case byFrame:
			h, _ := parseHeader([]byte(sends[:min(10, len(sends))]))
			n = h.whole()
		}
		n = min(n, len(sends))
		all, sends = append(all, sends[:n]), sends[n:]
	}
	return all
}

// clientSays sends what a client says to the channel, until the client hangs up.
func clientSays(r *bufio.Reader, to chan<- string) {
	defer close(to)
	var op byte
	var message []byte
	for {
		first, payload, err := readSent(r)
		if err != nil {
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				to <- "the client does not hang up"
			}
			return
		}
		switch {
		case first&0xf >= close8:
			to <- said(first&0xf, string(payload))
			continue
		case first&0xf != opContinuation:
			op = first & 0xf
		}
		if message = append(message, payload...); first&fin != 0 {
			to <- said(op, string(message))
			message = nil
		}
	}
}

// said names what a client has sent: of a close frame the code, of others the payload, or
// its size and sum.
func said(op byte, payload string) string {
	name := map[byte]string{text: "text", bin: "binary", ping: "ping", pong: "pong", close8: "close"}[op]
	switch {
	case op == close8 && len(payload) < 2:
		return name
	case op == close8:
		return fmt.Sprint(name, " ", binary.BigEndian.Uint16([]byte(payload)))
	case len(payload) > 200:
		return fmt.Sprintf("%s of %d bytes, CRC %08x", name, len(payload), crc32.ChecksumIEEE([]byte(payload)))
	}
	return fmt.Sprintf("%s %q", name, payload)
}

// readSent reads a frame of a client.
func readSent(r *bufio.Reader) (first byte, payload []byte, err error) {
	head, err := r.Peek(6) // no frame is shorter
	if err != nil {
		return 0, nil, err
	}
	if size := int(head[1] & 0x7f); size > maxControl {
		if head, err = r.Peek(14); err != nil {
			return 0, nil, err
		}
	}
	first, size := sentFrame(head)
	sent := make([]byte, size)
	_, err = io.ReadFull(r, sent)
	return first, []byte(unmasked(sent)), err
}

// unmasked returns the payload of a client's frame.
func unmasked(sent []byte) string {
	at := 2
	switch sent[1] & 0x7f {
	case 126:
		at = 4
	case 127:
		at = 10
	}
	key, payload := sent[at:at+4], sent[at+4:]
	for i := range payload {
		payload[i] ^= key[i%4]
	}
	return string(payload)
}

// dial returns a client of ours for a case.
func (s *fuzzer) dial(t *testing.T, index int, o *WebSocketOptions) *WebSocket {
	c, err := dialLoopback(fmt.Sprintf("ws://%s/%d", s.addr, index), websocket.CompressionDisabled, o)
	require.NoError(t, err)
	return c
}

func dialLoopback(url string, mode websocket.CompressionMode, o *WebSocketOptions) (*WebSocket, error) {
	var wire Wire
	rt := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, network, addr)
		return wire.Tap(nc), err
	}}
	ws, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: wire.Transport(rt)}, CompressionMode: mode,
	})
	if err != nil {
		return nil, err
	}
	return NewWebSocket(ws, &wire, o)
}
