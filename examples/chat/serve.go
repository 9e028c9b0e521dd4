package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect/drain"
)

const (
	helloLimit = 10 * time.Second // to wait for the hello of a new connection
	writeLimit = 10 * time.Second // for one write
)

// serve is `chat serve`.
func serve(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("chat serve", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8000", "listen on this `address`; port 0 means any free port")
	path := flags.String("log", "", "keep what is said in this `file`, and restore the room from it")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr) // before the log, so that a second server on this port leaves the log alone
	if err != nil {
		return err
	}
	defer listener.Close()
	return serveOn(ctx, listener, *path, s.Out)
}

// serveOn serves until ctx ends, or until the log cannot be written.
func serveOn(ctx context.Context, listener net.Listener, path string, stdout io.Writer) error {
	out := log.New(stdout, "", 0)
	if err := out.Output(0, fmt.Sprintf("serving ws://%s/", listener.Addr())); err != nil {
		return &command.OutputError{Err: err}
	}
	room, err := openRoom(path, out.Printf)
	if err != nil {
		return err
	}
	group, err := drain.New(&drain.Options{Lead: -1, Window: -1}) // a room ends at once
	if err != nil {
		return err
	}
	inside, end := context.WithCancel(context.Background()) // when it ends, all connections are cut
	defer end()
	s := &server{room, group, inside}
	h := &http.Server{
		Handler: group.Handler(s), ReadHeaderTimeout: helloLimit, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, tcp{}, c) },
	}
	var running sync.WaitGroup
	running.Go(func() { room.run(inside) })
	running.Go(func() { err = h.Serve(listener); end() })
	select {
	case <-ctx.Done():
		out.Printf("closing")
	case <-room.ended:
	}
	cut := time.AfterFunc(command.InterruptLimit, end)
	_ = group.Drain(context.Background()) // its error is that a member has not answered in time
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

// tcp is the key of the net.Conn in the context of a request.
type tcp struct{}

// server serves the connections of members.
type server struct {
	room  *room
	group *drain.Group
	ctx   context.Context
}

// ServeHTTP serves one member until its connection ends.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer ws.CloseNow()
	stop := context.AfterFunc(s.ctx, func() { r.Context().Value(tcp{}).(net.Conn).Close() }) // CloseNow does not end a Close
	defer stop()
	ws.SetReadLimit(maxMessage)
	ctx, cut := context.WithCancel(s.ctx)
	defer cut()
	greeting, cancel := context.WithTimeout(ctx, helloLimit)
	hello, err := receive(greeting, ws, "hello")
	cancel()
	if err != nil {
		return
	}
	m := &member{name: hello.Name, author: authorOf(hello.Client), cut: cut, queue: make(chan []byte, queueLength)}
	if !s.room.do(func() { s.room.join(m, hello) }) {
		return
	}
	written := make(chan struct{})
	go func() { // <-written waits for it
		defer close(written)
		write(ctx, ws, m)
	}()
	defer s.group.Add(func(int, string) error {
		s.room.do(func() { s.room.dismiss(m) })
		<-written
		return nil
	}).Remove()
	for {
		said, err := receive(ctx, ws, "say")
		if err != nil || !s.room.do(func() { s.room.say(m, said.ID, said.Text) }) {
			break
		}
	}
	s.room.do(func() { s.room.dismiss(m) })
	cut()
	<-written
}

// receive reads a message. If the message is not valid, or of another type, it closes the
// connection.
func receive(ctx context.Context, ws *websocket.Conn, want string) (message, error) {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return message{}, err
	}
	m, err := decode(data)
	if err == nil && m.Type != want {
		err = fmt.Errorf("want a %s, not a %s", want, m.Type)
	}
	if err != nil {
		ws.Close(websocket.StatusPolicyViolation, fmt.Sprintf("%.100s", terminal.Clean(err.Error())))
	}
	return m, err
}

// write writes the messages of m's queue, and closes the connection when the queue is closed.
func write(ctx context.Context, ws *websocket.Conn, m *member) {
	for {
		select {
		case data, more := <-m.queue:
			if !more {
				ws.Close(websocket.StatusGoingAway, "")
				return
			}
			limit, cancel := context.WithTimeout(ctx, writeLimit)
			err := ws.Write(limit, websocket.MessageText, data)
			cancel()
			if err != nil {
				m.cut()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
