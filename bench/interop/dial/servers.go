package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// A server serves on l until stop is called, which closes l and all connections, and waits for the server's goroutines.
// stop may be called again.

func serveHTTP(l net.Listener) (stop func()) {
	respond := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
	s := &http.Server{Handler: http.HandlerFunc(respond)}
	return serveBy(func() { _ = s.Serve(l) }, func() { s.Close() })
}

func serveGRPC(l net.Listener) (stop func()) {
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	return serveBy(func() { _ = s.Serve(l) }, s.Stop)
}

// serveBy calls serve in a goroutine, and returns a function that calls shut and waits until serve has returned.
func serveBy(serve, shut func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve()
	}()
	return func() {
		shut()
		<-done
	}
}

func servePostgres(l net.Listener) (stop func()) { return serveEach(l, postgres) }
func serveRedis(l net.Listener) (stop func())    { return serveEach(l, redisLike) }
func serveNothing(l net.Listener) (stop func()) {
	return serveEach(l, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// serveEach calls handle for each connection, in a goroutine of its own.
func serveEach(l net.Listener, handle func(c net.Conn)) (stop func()) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards open and closed
	open := map[net.Conn]bool{}
	closed := false
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if closed {
				c.Close()
			}
			open[c] = true
			mu.Unlock()
			all.Go(func() {
				handle(c)
				c.Close()
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	return func() {
		l.Close()
		mu.Lock()
		closed = true
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	}
}

// postgres sends the responses that a ping of pgx needs. It closes the connection of a cancel request immediately, for
// which pgx waits up to 15 s.
func postgres(c net.Conn) {
	b := pgproto3.NewBackend(c, c)
	m, err := b.ReceiveStartupMessage()
	if _, startup := m.(*pgproto3.StartupMessage); err != nil || !startup {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		if _, query := m.(*pgproto3.Query); query {
			b.Send(&pgproto3.EmptyQueryResponse{})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	}
}

// redisLike responds to PING, and to any other command with an error. A command is an array of strings, each on a line
// after its length.
func redisLike(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		head, err := r.ReadString('\n')
		if err != nil || !strings.HasPrefix(head, "*") {
			return
		}
		var words []string
		for range 2 * int(head[1]-'0') { // no command here has ten words
			word, err := r.ReadString('\n')
			if err != nil {
				return
			}
			words = append(words, strings.TrimSpace(word))
		}
		response := "-ERR unknown command\r\n"
		if len(words) > 1 && strings.EqualFold(words[1], "ping") {
			response = "+PONG\r\n"
		}
		if _, err := io.WriteString(c, response); err != nil {
			return
		}
	}
}
