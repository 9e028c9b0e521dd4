//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// server has the port, and the goroutines of the members.
type server struct {
	room *room
	ctx  context.Context // when it ends everybody is cut off

	mu      sync.Mutex // guards what follows
	members sync.WaitGroup
	closed  bool
}

const (
	helloLimit    = 10 * time.Second // for a joiner to say who he is
	writeLimit    = 10 * time.Second // for a message to be written
	farewellLimit = 3 * time.Second  // for all members to be told the end
)

// serve is `chat serve`.
func serve(ctx context.Context, addr, path string, stdout io.Writer) error {
	listener, err := net.Listen("tcp", addr) // first: who has the port has the log
	if err != nil {
		return err
	}
	defer listener.Close()
	return serveOn(ctx, listener, path, stdout)
}

func serveOn(ctx context.Context, listener net.Listener, path string, stdout io.Writer) error {
	out := log.New(stdout, "", 0)
	room, err := openRoom(path, out.Printf)
	if err != nil {
		return err
	}
	inside, end := context.WithCancel(context.Background())
	defer end()
	s := &server{room: room, ctx: inside}
	h := &http.Server{Handler: s, ReadHeaderTimeout: helloLimit, ErrorLog: log.New(io.Discard, "", 0)}
	var running sync.WaitGroup
	running.Go(func() { room.run(inside) })
	running.Go(func() { err = h.Serve(listener); end() })
	out.Printf("serving ws://%s/", listener.Addr())

	select {
	case <-ctx.Done():
		out.Printf("closing")
	case <-room.ended:
		end()
	}
	s.close()
	cut := time.AfterFunc(farewellLimit, end)
	s.members.Wait()
	cut.Stop()
	end()
	h.Close() // not those who were members, of whom it knows nothing
	running.Wait()
	switch {
	case room.failure != nil:
		return fmt.Errorf("write the log: %w", room.failure)
	case !errors.Is(err, http.ErrServerClosed):
		return err
	}
	return nil
}

// enter counts a member, unless it is too late to come.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.members.Add(1)
	}
	return !s.closed
}

// close says goodbye to everybody, and lets nobody in.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.room.do(s.room.farewell)
}

// ServeHTTP takes one who comes, and stays with him.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	defer s.members.Done()
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(maxMessage)
	ctx, cut := context.WithCancel(s.ctx)
	defer cut()
	hello, err := receive(ctx, ws, helloLimit)
	if err != nil {
		return
	}
	if hello.Type != "hello" {
		ws.Close(websocket.StatusPolicyViolation, "the first message must be a hello")
		return
	}
	m := &member{ws: ws, cut: cut, queue: make(chan []byte, queueLength)}
	if !s.room.do(func() { s.room.join(m, hello) }) {
		return
	}
	written := make(chan struct{})
	go func() { // joined below
		defer close(written)
		m.write(ctx)
	}()
	for s.obey(ctx, m) {
	}
	s.room.do(func() { s.room.leave(m) })
	cut()
	<-written
}

// obey does what the next message of m asks for, and reports whether to go on.
func (s *server) obey(ctx context.Context, m *member) bool {
	msg, err := receive(ctx, m.ws, 0)
	switch {
	case err != nil:
		return false
	case msg.Type == "say":
		return s.room.do(func() { s.room.say(m, msg.ID, msg.Text) })
	case msg.Type == "who":
		return s.room.do(func() { s.room.who(m) })
	}
	m.ws.Close(websocket.StatusPolicyViolation, "unexpected message: "+msg.Type)
	return false
}

// receive reads a message; it closes the connection if that is none of ours. A
// limit of 0 is none.
func receive(ctx context.Context, ws *websocket.Conn, limit time.Duration) (message, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	_, data, err := ws.Read(ctx)
	if err != nil {
		return message{}, err
	}
	m, err := decode(data)
	if err != nil {
		ws.Close(websocket.StatusPolicyViolation, fmt.Sprintf("%.100s", clean(err.Error())))
	}
	return m, err
}

// member is somebody in the room, by one connection.
type member struct {
	ws     *websocket.Conn
	cut    context.CancelFunc
	name   string      // the room's, as what follows
	author *author     // nil before he is in
	queue  chan []byte // the room sends, and closes it when he is not a member any more
}

// queueLength is how far a member may lag behind. It has room for the whole history
// and an answer to each line that a client may send again while it does not read.
const queueLength = historyKept + maxUnsaid + 500

// write sends what is in the queue, and says goodbye when that is closed.
func (m *member) write(ctx context.Context) {
	for {
		select {
		case data, more := <-m.queue:
			if !more {
				m.ws.Close(websocket.StatusGoingAway, "")
				return
			}
			if m.send(ctx, data) != nil {
				m.cut()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (m *member) send(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return m.ws.Write(ctx, websocket.MessageText, data)
}
