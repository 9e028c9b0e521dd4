package history

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

// tcpPeer is the server's end of one connection.
type tcpPeer struct {
	w  *tcpWorld
	nc *net.TCPConn
	in *bufio.Reader

	s *tcpSession // or nil before the login; does not change once others know the peer

	turn   sync.Mutex // guards what follows, and is held while a frame is written
	holds  bool       // frames are appended to held and not written
	held   []byte
	ended  bool // no frame may follow
	pings  int  // number of the last ping
	resets int  // frames of the client after which the peer resets the connection, or 0
}

// The ways in which a peer ends a connection.
const (
	byReset     = iota
	byClose     // which resets it if something is unread
	byHalfClose // the peer keeps reading
	byGoodbye   // the peer awaits the client's close frame
)

var tcpWays = []string{"reset", "close", "half-close", "goodbye"}

// accept serves connections until the listener is closed.
func (w *tcpWorld) accept() {
	for {
		nc, err := w.listener.AcceptTCP()
		if err != nil {
			return
		}
		w.serving.Go(func() {
			defer nc.Close()
			p := &tcpPeer{w: w, nc: nc, in: bufio.NewReader(nc)}
			err := p.serve()
			p.turn.Lock()
			defer p.turn.Unlock()
			p.ended = true
			w.mu.Lock()
			defer w.mu.Unlock()
			if p.s != nil {
				delete(w.peers, p.s.number)
				w.log("session %d is not served any more: %v", p.s.number, err)
			}
		})
	}
}

// serve shakes hands and reads what the client sends, until the end of the connection.
func (p *tcpPeer) serve() error {
	q, err := http.ReadRequest(p.in)
	if err != nil {
		return err
	}
	if q.URL.Path != p.w.path {
		return errors.New("the port was that of another program's server")
	}
	p.w.mu.Lock()
	p.w.log("handshake")
	p.w.check(GoodbyeIsObeyed, p.w.now() >= p.w.notBefore, "a dial came %v too early", p.w.notBefore-p.w.now())
	p.w.mu.Unlock()
	sum := sha1.Sum([]byte(q.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(p.nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	if err != nil {
		return err
	}
	var data []byte // of an unfinished message
	last := 0       // ping that was answered last
	for {
		head, payload, err := p.frame()
		if err != nil {
			return err
		}
		switch opcode := head & 15; opcode {
		case 0, 1, 2:
			data = append(data, payload...)
			if head&conntest.Fin != 0 {
				p.hear(string(data))
				data = nil
			}
		case 8:
			return p.part(payload)
		case ping:
			p.put(conntest.Frame{Head: conntest.Fin | 10, Payload: payload})
		case 10:
			n := 0
			_, err := fmt.Sscanf(string(payload), "%d", &n)
			p.turn.Lock()
			known := err == nil && n <= p.pings
			p.turn.Unlock()
			p.w.claim(ClientKeeps, known && n > last, "pong %q after %d", payload, last)
			last = n
		default:
			p.w.claim(ClientKeeps, false, "a frame with the opcode %d", opcode)
		}
		p.turn.Lock()
		reset := p.resets == 1
		p.resets = max(0, p.resets-1)
		p.turn.Unlock()
		if reset {
			p.end(byReset, "")
		}
	}
}

// frame reads one frame of the client.
func (p *tcpPeer) frame() (head byte, payload []byte, err error) {
	var start [2]byte
	if _, err := io.ReadFull(p.in, start[:]); err != nil {
		return 0, nil, err
	}
	size := uint64(start[1] & 127)
	switch size {
	case 126:
		var long uint16
		err = binary.Read(p.in, binary.BigEndian, &long)
		size = uint64(long)
	case 127:
		err = binary.Read(p.in, binary.BigEndian, &size)
	}
	masked, control := start[1]&128 != 0, start[0]&8 != 0
	if right := masked && start[0]&0x70 == 0 && size < 1<<20 && (!control || size < 126); err == nil && !right {
		p.w.claim(ClientKeeps, false, "a frame that begins with %x", start)
		err = errors.New("no frame")
	}
	if err != nil {
		return 0, nil, err
	}
	var mask [4]byte
	if _, err := io.ReadFull(p.in, mask[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(p.in, payload); err != nil {
		return 0, nil, err
	}
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return start[0], payload, nil
}

// part answers the client's close frame, unless the peer has sent one, and ends the connection. Nothing may follow
// the frame.
func (p *tcpPeer) part(payload []byte) error {
	p.turn.Lock() // until both are done, so that no session logs in and misses an event in between
	p.putLocked(conntest.Frame{Head: conntest.Fin | 8, Payload: payload[:min(2, len(payload))]})
	p.release()
	p.ended = true
	_ = p.nc.CloseWrite()
	if p.s != nil {
		p.w.mu.Lock()
		p.s.goodbye = true
		p.w.log("close frame of session %d: %q", p.s.number, payload)
		p.w.mu.Unlock()
	}
	p.turn.Unlock()
	rest, err := io.ReadAll(p.in)
	p.w.claim(ClientKeeps, len(rest) == 0, "%d bytes behind a close frame", len(rest))
	return err
}

// hear takes a message of the client.
func (p *tcpPeer) hear(data string) {
	if data == "alive" {
		return
	}
	w := p.w
	if p.s == nil {
		p.admit(data)
		return
	}
	id, rest, _ := strings.Cut(data, " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.messages[id]
	whole := m != nil && len(rest) == m.size
	w.check(WrittenWhole, whole, "session %d brought %.30q of %d bytes", p.s.number, data, len(data))
	if m == nil {
		return
	}
	m.arrivals++
	w.check(NotTwice, m.arrivals == 1, "%s by session %d", id, p.s.number)
	w.check(OrderKept, m.order > p.s.lastOrder, "%s after %d by session %d", id, p.s.lastOrder, p.s.number)
	p.s.lastOrder = m.order
}

// admit takes a login. The session gets each event from then on.
func (p *tcpPeer) admit(login string) {
	w := p.w
	w.feeding.Lock()
	defer w.feeding.Unlock()
	s := &tcpSession{peer: p, due: w.events}
	_, err := fmt.Sscanf(login, "login %d", &s.number)
	p.s = s
	w.mu.Lock()
	w.log("login %d, after event %d", s.number, s.due)
	w.check(LoginBeforeMessages, err == nil, "%.20q came before the login", login)
	w.check(OneLogin, w.sessions[s.number] == nil, "a second login of session %d", s.number)
	w.sessions[s.number], w.peers[s.number] = s, p
	w.mu.Unlock()
	p.put(conntest.Frame{Head: conntest.Fin | 1, Payload: fmt.Append(nil, "welcome ", s.number)})
}

// put writes a frame, unless none may follow.
func (p *tcpPeer) put(f conntest.Frame) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.putLocked(f)
}

// putLocked is put for a caller that holds p.turn.
func (p *tcpPeer) putLocked(f conntest.Frame) {
	switch {
	case p.ended:
	case p.holds:
		p.held = append(p.held, f.Bytes()...)
	default:
		_ = p.nc.SetWriteDeadline(time.Now().Add(tcpHang))
		_, _ = p.nc.Write(f.Bytes()) // an error says that the client has closed the connection
	}
	p.ended = p.ended || f.Head == conntest.Fin|8
}

// release writes what was held, in one piece. The caller holds p.turn.
func (p *tcpPeer) release() {
	if p.holds {
		p.holds = false
		_, _ = p.nc.Write(p.held)
	}
}

// say sends an event.
func (p *tcpPeer) say(event int) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.ended {
		return
	}
	p.w.mu.Lock()
	i := len(p.s.sent)
	p.s.sent = append(p.s.sent, event)
	p.w.mu.Unlock()
	p.putLocked(conntest.Frame{Head: conntest.Fin | 1, Payload: []byte(tcpText(p.s.number, i, event))})
}

// tcpText returns message i of a session, which is an event. No other message looks like it.
func tcpText(session uint64, i, event int) string {
	size := event * 7919 % 300
	if event%37 == 0 {
		size = 8000
	}
	return fmt.Sprintf("%d %d %d %s", session, i, event, strings.Repeat(string(rune('a'+session%26)), size))
}

// ping sends n pings with different payloads of at least size bytes.
func (p *tcpPeer) ping(n, size int) {
	for range n {
		p.turn.Lock()
		p.pings++
		payload := append(fmt.Appendf(nil, "%09d ", p.pings), bytes.Repeat([]byte("x"), size)...)
		p.putLocked(conntest.Frame{Head: conntest.Fin | ping, Payload: payload})
		p.turn.Unlock()
	}
}

// end ends the connection in one of the ways, unless it has ended, and notes what the client is to hear before. A
// close frame with the reason comes first if that is not empty.
func (p *tcpPeer) end(way int, reason string) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.ended {
		return
	}
	words := &tcpWords{all: len(p.s.sent), reason: reason}
	p.w.mu.Lock()
	p.s.words = words
	if reason != "" {
		p.w.notBefore = p.w.now() + tcpWait
	}
	p.w.log("end of session %d after %d messages: %s, reason %q", p.s.number, words.all, tcpWays[way], reason)
	p.w.mu.Unlock()
	if reason != "" {
		p.putLocked(conntest.Frame{Head: conntest.Fin | 8, Payload: append([]byte{1012 >> 8, 1012 & 255}, reason...)})
	}
	p.release()
	p.ended = true
	switch way {
	case byReset, byClose:
		words.arrived.Store(sentAll(p.nc))
		if way == byReset {
			_ = p.nc.SetLinger(0)
		}
		_ = p.nc.Close()
	case byHalfClose:
		words.arrived.Store(true)
		_ = p.nc.CloseWrite()
	case byGoodbye:
		words.arrived.Store(true)
	}
}
