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

	"github.com/redial-go/redial/examples/internal/terminal"
)

// server serves HTTP, and counts the goroutines of the members.
type server struct {
	room *room
	ctx  context.Context // when it ends, all connections are cut

	mu      sync.Mutex // guards what follows
	members sync.WaitGroup
	closed  bool
}

const (
	helloLimit    = 10 * time.Second // to wait for the hello of a new connection
	writeLimit    = 10 * time.Second // for one write
	farewellLimit = 3 * time.Second  // to close all connections at the end
)

// serve runs `chat serve`.
func serve(ctx context.Context, addr, path, page string, stdout io.Writer) error {
	listener, err := net.Listen("tcp", addr) // before the log, so that a second server on this port leaves the log alone
	if err != nil {
		return err
	}
	defer listener.Close()
	return serveOn(ctx, listener, path, page, stdout)
}

func serveOn(ctx context.Context, listener net.Listener, path, page string, stdout io.Writer) error {
	out := log.New(stdout, "", 0)
	shown, err := openPage(page, out.Printf, nil) // before the room, whose log a wrong address leaves alone
	if err != nil {
		return err
	}
	defer shown.Close()
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
	shown.RegisterValues("Room", room.values)
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
	h.Close() // it does not know the connections of members, which are closed already
	running.Wait()
	switch {
	case room.failure != nil:
		return fmt.Errorf("write the log: %w", room.failure)
	case !errors.Is(err, http.ErrServerClosed):
		return err
	}
	return nil
}

// enter counts a member. It returns false if the server is closing.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.members.Add(1)
	}
	return !s.closed
}

// close closes the connections of all members, and accepts no more.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.room.do(s.room.farewell)
}

// ServeHTTP serves one member until its connection ends.
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
	greeting, cancel := context.WithTimeout(ctx, helloLimit)
	hello, err := receive(greeting, ws)
	cancel()
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
	go func() { // <-written waits for it
		defer close(written)
		m.write(ctx)
	}()
	for s.obey(ctx, m) {
	}
	s.room.do(func() { s.room.leave(m) })
	cut()
	<-written
}

// obey handles the next message of m, and reports whether to go on.
func (s *server) obey(ctx context.Context, m *member) bool {
	msg, err := receive(ctx, m.ws)
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

// receive reads a message. If the message is not valid, it closes the connection.
func receive(ctx context.Context, ws *websocket.Conn) (message, error) {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return message{}, err
	}
	m, err := decode(data)
	if err != nil {
		ws.Close(websocket.StatusPolicyViolation, fmt.Sprintf("%.100s", terminal.Clean(err.Error())))
	}
	return m, err
}

// member is one connection of a client in the room.
type member struct {
	ws     *websocket.Conn
	cut    context.CancelFunc
	name   string      // the room owns this and what follows
	author *author     // nil before it has joined
	queue  chan []byte // the room sends to it, and closes it when m is not a member any more
}

// queueLength is how many messages may wait for a member. It has room for the whole history
// and for an acknowledgement of each line that a client may send again before it reads.
const queueLength = historyKept + maxUnsaid + 500

// write writes the messages of the queue, and closes the connection when the queue is closed.
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
