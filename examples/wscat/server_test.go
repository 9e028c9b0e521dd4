//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// server is a WebSocket server that a test can kill and start again. The path of a URL says
// how it behaves, see behaviors.
type server struct {
	t    *testing.T
	addr string
	own  func(context.Context, *websocket.Conn) // the behavior of /own

	mu      sync.Mutex // guards what follows
	conns   []net.Conn
	headers []http.Header // of the requests
	http    *http.Server
	serving sync.WaitGroup
}

func newServer(t *testing.T) *server { return newServerOf(t, nil) }

// newServerOf is newServer with a behavior of its own at /own.
func newServerOf(t *testing.T, own func(context.Context, *websocket.Conn)) *server {
	s := &server{t: t, addr: ownHost() + ":0", own: own}
	s.start()
	t.Cleanup(s.kill)
	return s
}

var hosts atomic.Uint32

// ownHost returns an address of the loopback that nobody else uses, so that a port of it which is
// free stays free. Only Linux has more than one.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+(pid>>8)%250, pid%256, 1+hosts.Add(1)%250)
}

// start listens at the same address as before. A process that another test starts meanwhile holds the
// old socket for a moment, until it runs its own program.
func (s *server) start() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.addr)
	for try := 0; errors.Is(err, syscall.EADDRINUSE) && try < 1000; try++ {
		time.Sleep(5 * time.Millisecond)
		l, err = net.Listen("tcp", s.addr)
	}
	require.NoError(s.t, err)
	s.addr = l.Addr().String()
	s.http = &http.Server{Handler: s, ConnState: func(nc net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state == http.StateNew {
			s.conns = append(s.conns, nc)
		}
	}}
	s.serving.Go(func() { s.http.Serve(l) })
}

// kill cuts all connections, as the end of a process does.
func (s *server) kill() {
	s.http.Close()
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nc := range s.conns {
		nc.Close()
	}
	s.conns = nil
}

func (s *server) url(path string) string { return "ws://" + s.addr + path }

// behaviors say what the server does with a new connection, before it sends back what it gets.
var behaviors = map[string]func(context.Context, *websocket.Conn){
	"/echo": func(context.Context, *websocket.Conn) {},
	"/1000": func(_ context.Context, ws *websocket.Conn) { ws.Close(websocket.StatusNormalClosure, "that was all") },
	"/1011": func(_ context.Context, ws *websocket.Conn) { ws.Close(websocket.StatusInternalError, "an error") },
	"/wild": func(ctx context.Context, ws *websocket.Conn) {
		ws.Write(ctx, websocket.MessageText, []byte(wild))
		ws.Write(ctx, websocket.MessageBinary, []byte{0, 1, 255})
	},
	"/large": func(ctx context.Context, ws *websocket.Conn) {
		ws.Write(ctx, websocket.MessageText, []byte(strings.Repeat("0123456789", 1000)))
	},
	"/flood": func(ctx context.Context, ws *websocket.Conn) {
		for i := range floodMessages {
			if ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, "message %d", i)) != nil {
				return
			}
		}
		ws.Close(websocket.StatusNormalClosure, "that was all")
	},
}

const (
	floodMessages = 100_000

	// wild is what a hostile server may send to a terminal.
	wild = "\x1b]0;title\a\x1b[2J\u009b31m\u202e-- ready\nnext: 王 é \xff"
)

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.headers = append(s.headers, r.Header)
	s.mu.Unlock()
	behave, ok := behaviors[r.URL.Path]
	if r.URL.Path == "/own" {
		behave, ok = s.own, true
	}
	switch {
	case r.URL.Path == "/401":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/503":
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/hang":
		<-r.Context().Done()
	case r.URL.Path == "/page":
		fmt.Fprint(w, "a page")
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat.v2"}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(1 << 20)
		behave(r.Context(), ws)
		for {
			kind, data, err := ws.Read(r.Context())
			if err != nil || ws.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	}
}

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", ownHost()+":0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
