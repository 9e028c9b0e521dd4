package conn

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// fuzzer is a server on loopback that runs the case whose index is the path.
type fuzzer struct {
	addr  string
	cases []autobahn
	said  chan string // by the client of each case, in turn
}

func startFuzzer(t *testing.T, cases []autobahn) *fuzzer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &fuzzer{addr: l.Addr().String(), cases: cases, said: make(chan string, 1)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(nc)
			nc.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-served })
	return s
}

// serve makes the handshake by hand and sends the frames of the case, while it notes
// what the client sends.
func (s *fuzzer) serve(nc net.Conn) {
	r := bufio.NewReader(nc)
	request, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	key := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(key[:]))
	var index int
	fmt.Sscanf(request.URL.Path, "/%d", &index)
	c := s.cases[index]
	said := background(func() string { return clientSays(r) })
	piece := c.piece
	if piece == 0 {
		piece = max(1, len(c.sends))
	}
	for at := 0; at < len(c.sends) && err == nil; at += piece {
		_, err = io.WriteString(nc, c.sends[at:min(at+piece, len(c.sends))])
	}
	s.said <- said()
}

// clientSays returns what a client sends, up to its close frame or the end.
func clientSays(r *bufio.Reader) string {
	var all, message strings.Builder
	for {
		head, err := r.Peek(14)
		if len(head) < 6 {
			return all.String() + err.Error()
		}
		first, size := sentFrame(append(head[:len(head):len(head)], make([]byte, 14)...))
		sent := make([]byte, size)
		if _, err := io.ReadFull(r, sent); err != nil {
			return all.String() + err.Error()
		}
		payload := unmasked(sent)
		switch first &^ fin {
		case close8:
			if len(payload) < 2 {
				return all.String() + "close"
			}
			return fmt.Sprint(all.String(), "close ", binary.BigEndian.Uint16([]byte(payload)))
		case pong:
			all.WriteString("pong " + payload + "|")
		default:
			message.WriteString(payload)
			if first&fin != 0 {
				all.WriteString(echo(message.String()))
				message.Reset()
			}
		}
	}
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
func (s *fuzzer) dial(t *testing.T, index int) *WebSocket {
	var wire Wire
	rt := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, addr)
		return wire.Tap(nc), err
	}}
	ws, _, err := websocket.Dial(context.Background(), fmt.Sprintf("ws://%s/%d", s.addr, index), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: wire.Transport(rt)},
	})
	require.NoError(t, err)
	return NewWebSocket(ws, &wire, &WebSocketOptions{CheckUTF8: true})
}
