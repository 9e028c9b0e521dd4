package readers

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// script is the connection to a server that sends the bytes of comes and then hangs up. A Read returns at most
// as many bytes as the next number of cuts says; after the last number the first one follows again.
type script struct {
	conditions
	comes []byte
	cuts  []int

	mu     sync.Mutex
	next   int
	sent   bytes.Buffer
	shaken chan struct{} // closed when the handshake has been answered
}

func newScript(c conditions, stream []byte, cuts []int) *script {
	return &script{conditions: c, comes: stream, cuts: cuts, shaken: make(chan struct{})}
}

// Read returns the next piece.
func (s *script) Read(p []byte) (int, error) {
	<-s.shaken
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.comes) == 0 {
		return 0, io.EOF
	}
	if len(s.cuts) > 0 {
		p = p[:min(len(p), s.cuts[s.next%len(s.cuts)])]
		s.next++
	}
	n := copy(p, s.comes)
	s.comes = s.comes[n:]
	return n, nil
}

// Write keeps what the client sends. If the client has not made its handshake by RoundTrip, the first bytes are the
// handshake, and Write prepares the answer.
func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Write(p)
	select {
	case <-s.shaken:
	default:
		if r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(s.sent.Bytes()))); err == nil {
			var answer bytes.Buffer
			answer.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
			_ = s.header(r.Header.Get("Sec-WebSocket-Key")).Write(&answer)
			answer.WriteString("\r\n")
			s.comes = append(answer.Bytes(), s.comes...)
			s.sent.Reset()
			close(s.shaken)
		}
	}
	return len(p), nil
}

// RoundTrip answers the handshake of a client that makes the handshake with an http.Client.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	close(s.shaken)
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: s.header(r.Header.Get("Sec-WebSocket-Key")), Body: s}, nil
}

// header is that of the 101 answer to a handshake with this key.
func (s *script) header(key string) http.Header {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	h := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
	h.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	switch {
	case s.takeover:
		h.Set("Sec-WebSocket-Extensions", "permessage-deflate")
	case s.compressed:
		h.Set("Sec-WebSocket-Extensions", "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
	}
	return h
}

func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// said returns the pongs that the client has sent, and the code of its close frame: 0 if the frame has no
// code, none if the client has sent no close frame.
func (s *script) said() (pongs []string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent.Bytes()
	code = none
	for len(sent) >= 6 && code == none {
		size := int(sent[1] & 0x7f) // every frame that a client sends here is a control frame
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = sent[6+i] ^ sent[2+i%4]
		}
		switch sent[0] & 0xf {
		case opPong:
			pongs = append(pongs, string(payload))
		case opClose:
			if code = 0; size > 1 {
				code = int(payload[0])<<8 | int(payload[1])
			}
		}
		sent = sent[6+size:]
	}
	return pongs, code
}
