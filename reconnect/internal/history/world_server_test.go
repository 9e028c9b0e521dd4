package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn/conntest"
)

// server is what the faults of a server need.
type server interface {
	Start()
	Close()
	Next(answers ...conntest.Answer)
}

func (w *world) newServer() server {
	if w.set.Framing == 0 {
		s := conntest.NewServer(w.network, address, w.serveWS)
		s.Options = w.acceptOptions()
		if w.set.TLS {
			s.TLS, _ = secure()
		}
		return s
	}
	s := &framedServer{w: w}
	s.Start()
	return s
}

// eventAt returns when event n of the feed happens, from 1 on: one in each Tick, and one in 5 s
// when the faults are over.
func (w *world) eventAt(n int) time.Duration {
	salt := time.Duration(uint64(n) * 0x9e3779b97f4a7c15 >> 44) // up to 1 ms, so that no two things happen at one instant
	tick, in := w.set.Tick, int(w.plan.Length/w.set.Tick)
	if n <= in {
		return time.Duration(n)*tick + salt
	}
	return time.Duration(in)*tick + time.Duration(n-in)*5*time.Second + salt
}

// happened returns how many events of the feed have happened.
func (w *world) happened() int { return w.happenedBy(w.now()) }

// happenedBy returns how many events of the feed happen until a time.
func (w *world) happenedBy(at time.Duration) int {
	n := 0
	if in := int(w.plan.Length / w.set.Tick); w.eventAt(in) <= at {
		n = in + int((at-w.eventAt(in))/(5*time.Second))
	} else {
		n = int(at / w.set.Tick)
	}
	for n = max(0, n-1); w.eventAt(n+1) <= at; n++ {
	}
	return n
}

// text returns message i of a session, which is event n of the feed. No other message looks like it.
func (w *world) text(session uint64, i, n int) string {
	size := n * 7919 % 300
	if n%37 == 0 {
		size = 20_000
	}
	data := fmt.Sprintf("%d %d %d %s", session, i, n, strings.Repeat(string(rune('a'+session%26)), size))
	if w.set.Forms {
		return w.sized(data, n)
	}
	return data
}

// serve serves one connection: read returns the next message, or a part of one with an error, and
// say writes one; end closes the connection.
func (w *world) serve(ctx context.Context, p *conntest.Pipe, read func() (string, error), say func(string) error, end func(int, string) error) {
	if w.set.Forms && p != nil {
		say = func(data string) error { return form{w, p}.say(ctx, data) }
	}
	send := say
	say = func(data string) error {
		w.mu.Lock()
		w.said++
		w.mu.Unlock()
		return send(data)
	}
	login, err := read()
	if err != nil {
		return
	}
	s := w.admit(p, login)
	if s != nil && w.refusesLogin(p, end) {
		return
	}
	if s == nil || say(fmt.Sprint("welcome ", s.number)) != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	turn := make(chan struct{}, 1) // held while a message is written; no mutex, because virtual time stands still while one is waited for
	both := func(data string) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		return say(data)
	}
	var feeding sync.WaitGroup
	from := w.happened() + 1
	feeding.Go(func() { w.feed(ctx, s, from, both) })
	defer feeding.Wait()
	defer cancel()
	peer := &peer{w: w, session: s.number, pipe: p, ctx: ctx, say: both, end: end, work: &feeding, turn: turn}
	w.mu.Lock()
	w.peers[s.number] = peer
	w.mu.Unlock()
	defer w.depart(s.number)
	w.above.admit(peer)
	w.endOthers(s.number)
	w.exceed(peer)
	for {
		data, err := read()
		if err == nil {
			w.paced(p, len(data))
		}
		if err == nil && data == "ping" {
			feeding.Go(func() {
				select {
				case <-time.After(w.lateBy()):
					both("pong")
				case <-ctx.Done():
				}
			})
			continue
		}
		if w.serveAbove(peer, data, err) {
			continue
		}
		w.arrive(s, data, err)
		if err != nil {
			return
		}
	}
}

// admit takes a login.
func (w *world) admit(p *conntest.Pipe, login string) *session {
	w.mu.Lock()
	defer w.mu.Unlock()
	var n uint64
	_, err := fmt.Sscanf(login, "login %d", &n)
	w.check(LoginBeforeMessages, err == nil, "%.20q came before the login", login)
	if err != nil {
		return nil
	}
	s := w.of(n)
	s.logins++
	w.log("login %d", n)
	w.check(OneLogin, s.logins == 1, "%d logins of session %d", s.logins, n)
	s.pipe, w.piped(p).session = p, n
	s.ahead = make(map[uint64]position)
	for other, o := range w.sessions {
		s.ahead[other] = o.reaches()
	}
	return s
}

// feed sends the events from one on.
func (w *world) feed(ctx context.Context, s *session, from int, say func(string) error) {
	for i, n := 0, from; ; i, n = i+1, n+1 {
		w.mu.Lock()
		at := max(w.eventAt(n)+time.Duration(s.number)*time.Microsecond, w.silentUntil)
		s.sent = append(s.sent, n)
		w.mu.Unlock()
		select {
		case <-time.After(at - w.now()):
		case <-ctx.Done():
			return
		}
		if say(w.text(s.number, i, n)) != nil {
			return
		}
		w.mu.Lock()
		s.wrote = i + 1
		w.mu.Unlock()
	}
}

// arrive records what the server has read.
func (w *world) arrive(s *session, data string, err error) {
	id, rest, named := strings.Cut(data, " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.messages[id]
	if named && m != nil {
		m.begun = true
	}
	if w.quiet != nil && data == "alive" {
		w.quiet.alives++
	}
	if err != nil || data == "alive" {
		return
	}
	whole := m != nil && len(rest) == m.size
	w.check(WrittenWhole, whole, "session %d brought %.30q of %d bytes", s.number, data, len(data))
	if !whole {
		return
	}
	w.traffic++
	w.log("arrives %s by %d", id, s.number)
	m.arrivals, m.came = append(m.arrivals, s.number), w.now()
	if m.out.Session != 0 {
		w.check(ItsSessionOnly, m.out.Session == s.number, "%s for %d by %d", id, m.out.Session, s.number)
	} else if m.order > 0 {
		w.check(OrderKept, m.order > s.lastOrder, "%s (%d) after %d by session %d", id, m.order, s.lastOrder, s.number)
		s.lastOrder = m.order
		w.check(NotOvertaken, m.order > s.written || len(m.arrivals) > 1, "%s (%d) after a Write that began after %d, by session %d", id, m.order, s.written, s.number)
	} else if m.order == 0 {
		s.written = max(s.written, m.after)
	}
}

// doubtful reports whether data may be the beginning of a message only.
func (w *world) doubtful(data string) bool {
	if data == "ping" || data == "alive" || strings.HasPrefix(data, "login ") {
		return false
	}
	if _, ok := unframed(data); ok {
		return false
	}
	id, rest, _ := strings.Cut(data, " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.messages[id]
	return m == nil || len(rest) != m.size
}

// serveWS serves a WebSocket.
func (w *world) serveWS(ctx context.Context, c *websocket.Conn, q *http.Request) {
	_, password, _ := q.BasicAuth()
	home := q.Host == address
	w.claim(SecretsStayHome, (password == secret) == home && (q.Header.Get("X-Token") == token) == (home && w.set.Odd), "%q and %v for %s", password, q.Header, q.Host)
	c.SetReadLimit(-1)
	w.mu.Lock()
	w.pipeOf[c] = conntest.PipeOf(ctx)
	w.mu.Unlock()
	w.serve(ctx, conntest.PipeOf(ctx), func() (string, error) {
		_, r, err := c.Reader(ctx)
		if err != nil {
			w.clientKept(ctx, err)
			return "", err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			w.clientKept(ctx, err)
		}
		if err == nil && w.doubtful(string(data)) { // coder/websocket takes the end of the connection for that of a compressed message
			_, _, err = c.Reader(ctx)
			if err == nil {
				err = errors.New("a message that is not whole, and another")
			}
		}
		return string(data), err
	}, func(data string) error { return c.Write(ctx, websocket.MessageText, []byte(data)) }, func(code int, reason string) error { return c.Close(websocket.StatusCode(code), reason) })
}

// framedServer serves framed TCP.
type framedServer struct {
	w *world

	mu     sync.Mutex // guards what follows
	cancel context.CancelFunc
	work   *sync.WaitGroup
}

// Next is for WebSockets.
func (s *framedServer) Next(...conntest.Answer) {}

// Start begins to listen, unless it does.
func (s *framedServer) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return
	}
	l, err := s.w.network.Listen(address)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	work := new(sync.WaitGroup)
	s.cancel, s.work = func() { cancel(); l.Close() }, work
	work.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer nc.Close()
				defer context.AfterFunc(ctx, func() { nc.Close() })()
				s.serve(ctx, nc)
			})
		}
	})
}

// Close cuts all connections, and waits until their goroutines have ended.
func (s *framedServer) Close() {
	s.mu.Lock()
	cancel, work := s.cancel, s.work
	s.cancel = nil
	s.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	work.Wait()
}

func (s *framedServer) serve(ctx context.Context, nc net.Conn) {
	var p *conntest.Pipe
	for _, q := range s.w.network.Conns(address) {
		if q.Server() == nc {
			p = q
		}
	}
	in := bufio.NewReader(nc)
	s.w.serve(ctx, p, func() (string, error) { return s.read(in) }, func(data string) error {
		frame := []byte(data + "\n")
		if s.w.set.Framing == 2 {
			frame = s.w.set.withPrefix(data)
		}
		_, err := nc.Write(frame)
		return err
	}, func(int, string) error { return nc.Close() })
}

// read returns the next message, or as much of it as came.
func (s *framedServer) read(in *bufio.Reader) (string, error) {
	if s.w.set.Framing == 1 {
		line, err := in.ReadBytes('\n')
		return string(bytes.TrimSuffix(line, []byte("\n"))), err
	}
	size, err := s.w.set.readPrefix(in)
	if err != nil {
		return "", err
	}
	data := make([]byte, size)
	n, err := io.ReadFull(in, data)
	return string(data[:n]), err
}
