//go:build !js

package conntest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/coder/websocket"
)

// Server is a real coder/websocket server on a [Network]. It is safe for concurrent use, except for
// Close with Start.
type Server struct {
	// Options are the options of websocket.Accept, to be set before the first dial. Default: no
	// check of the origin.
	Options *websocket.AcceptOptions

	// TLS, set before the first dial, makes the Server a wss server.
	TLS *tls.Config

	network *Network
	addr    string
	handler Handler

	mu         sync.Mutex // guards the fields below
	script     []Answer
	live       []*websocket.Conn // the oldest first
	generation *generation
	run        *run // nil when closed
}

// generation is the connections that were accepted between two calls of Disconnect. The client
// has its answer before the server has its connection, so Disconnect must also reach
// connections that are just being accepted.
type generation struct {
	accepting sync.WaitGroup
	bye       func(*websocket.Conn) // closes a connection of a generation that is over; nil: it is not
}

// run is the server between Start and Close.
type run struct {
	http     *http.Server
	listener net.Listener
	cancel   context.CancelFunc
	work     sync.WaitGroup // Serve, the connections of net/http, and the answers
}

// NewServer starts a server on addr ("host:port") that passes each WebSocket to handler, or to
// [Echo] if handler is nil. It panics if addr is in use. The caller must call Close.
func NewServer(n *Network, addr string, handler Handler) *Server {
	if handler == nil {
		handler = Echo
	}
	s := &Server{network: n, addr: addr, handler: handler, generation: new(generation)}
	s.Start()
	return s
}

// Start opens the address again after Close, keeping the remaining answers of Next. It panics if
// the address is in use, and does nothing on a running server.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return
	}
	l, err := s.network.Listen(s.addr)
	if err != nil {
		panic("conntest: " + err.Error())
	}
	ctx, cancel := context.WithCancel(context.Background())
	u := &run{listener: l, cancel: cancel}
	u.http = &http.Server{
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(u, w, r) }),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withPipe,
		ConnState:   u.count,
		ErrorLog:    log.New(io.Discard, "", 0), // a failed handshake is the test's business
	}
	s.run = u
	u.work.Go(func() { u.http.Serve(&secured{l, s}) }) // waited for in Close
}

// Close kills the server: its address refuses dials, its connections are closed without a close
// frame, and the contexts of its handlers are canceled. Close waits for the handlers, so a handler
// must not call it. Closing twice is harmless.
func (s *Server) Close() {
	s.mu.Lock()
	u := s.run
	s.run = nil
	s.mu.Unlock()
	if u == nil {
		return
	}
	u.http.Close() // the listener first, so that a client that redials at once is refused
	for _, p := range s.network.held(s.addr) {
		p.server.Close()
	}
	u.cancel()
	u.work.Wait()
}

// Disconnect sends a close frame with this code and reason on every connection, including those
// being accepted, and waits until all are closed. New dials are served meanwhile.
func (s *Server) Disconnect(code websocket.StatusCode, reason string) {
	bye := func(c *websocket.Conn) { c.Close(code, reason) }
	s.mu.Lock()
	e := s.generation
	e.bye, s.generation = bye, new(generation)
	live := slices.Clone(s.live)
	s.mu.Unlock()
	for _, c := range live {
		e.accepting.Go(func() { bye(c) })
	}
	e.accepting.Wait()
}

// Conns returns the connections that a handler serves now, the oldest first. A client may have its
// response before Conns has its connection: call synctest.Wait first.
func (s *Server) Conns() []*websocket.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.live)
}

// Next sets the answers to the next handshakes: each takes one in turn, and all further ones take
// the last. If there are no answers, or an answer is nil, the server accepts. Next replaces all
// earlier answers.
func (s *Server) Next(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = slices.Clone(answers)
}

// Accept is an Answer that accepts the WebSocket and runs the server's handler.
func (s *Server) Accept(w http.ResponseWriter, r *http.Request) { s.accept(w, r, s.handler) }

// AcceptWith returns an Answer that accepts the WebSocket and runs h.
func (s *Server) AcceptWith(h Handler) Answer {
	return func(w http.ResponseWriter, r *http.Request) { s.accept(w, r, h) }
}

func (s *Server) accept(w http.ResponseWriter, r *http.Request, h Handler) {
	s.mu.Lock()
	e := s.generation
	e.accepting.Add(1)
	s.mu.Unlock()
	c := s.admit(w, r, e)
	e.accepting.Done()
	if c == nil {
		return
	}
	defer func() {
		s.mu.Lock()
		s.live = slices.DeleteFunc(s.live, func(other *websocket.Conn) bool { return other == c })
		s.mu.Unlock()
		c.CloseNow()
	}()
	h(r.Context(), c, r)
}

// admit accepts the WebSocket and lists it. It returns nil if the handshake failed, or if e
// is over; it has answered or closed the connection then.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, e *generation) *websocket.Conn {
	o := s.Options
	if o == nil {
		o = &websocket.AcceptOptions{InsecureSkipVerify: true}
	}
	c, err := websocket.Accept(w, r, o)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	bye := e.bye
	if bye == nil {
		s.live = append(s.live, c)
	}
	s.mu.Unlock()
	if bye != nil {
		bye(c)
		return nil
	}
	return c
}

// serve gives one request to the next answer of the script.
func (s *Server) serve(u *run, w http.ResponseWriter, r *http.Request) {
	u.work.Add(1) // while net/http's own count of this connection is still held
	defer u.work.Done()
	s.mu.Lock()
	var a Answer
	if len(s.script) > 0 {
		a = s.script[0]
	}
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	s.mu.Unlock()
	if a == nil {
		a = s.Accept
	}
	a(w, r)
}

// count counts the goroutines of net/http, because [http.Server.Close] does not wait for
// them.
func (u *run) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		u.work.Add(1)
	case http.StateClosed, http.StateHijacked:
		u.work.Done()
	}
}

// secured puts TLS on the connections that it accepts, if the server has TLS.
type secured struct {
	net.Listener
	server *Server
}

func (l *secured) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.server.TLS != nil {
		c = tls.Server(c, l.server.TLS)
	}
	return c, err
}

// withPipe puts the pipe of a connection into the context of its requests.
func withPipe(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if e, ok := c.(*endpoint); ok {
		ctx = context.WithValue(ctx, pipeKey{}, e.pipe)
	}
	return ctx
}
