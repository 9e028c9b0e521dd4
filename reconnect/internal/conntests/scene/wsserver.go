//go:build !js

package scene

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// WSServer is a real WebSocket server on a network in memory, and a dialer that goes there.
type WSServer struct {
	*conntest.Server
	Network *conntest.Network
	Dialer  *dialer.WebSocket
	Started time.Time // when the test began, or Ready or Down returned

	Form    Form
	Session uint64 // the number of the session that Ready has returned
}

const WSAddr = "feed.test:80"

// WithWSServer runs a test in virtual time. In the end, when every Conn of it is closed, no
// connection may be left open (promise 11).
func WithWSServer(t *testing.T, h conntest.Handler, test func(t *testing.T, server *WSServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		server := &WSServer{Server: conntest.NewServer(n, WSAddr, h), Network: n, Started: time.Now()}
		server.Dialer = &dialer.WebSocket{URL: "ws://feed.test/v1", DialContext: n.DialContext}
		t.Cleanup(func() {
			if open := n.Count("").Open; open > 0 {
				t.Errorf("connections that the client left open: %d", open)
			}
			server.Close()
			synctest.Wait()
			if left := n.Unclosed(); len(left) > 0 {
				t.Errorf("not closed: %v", left)
			}
		})
		test(t, server)
	})
}

func (s *WSServer) Now() time.Duration { return time.Since(s.Started) }

// Open starts a Conn to the server. The end of the test closes it.
func (s *WSServer) Open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(s.Dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { CloseAndWait(c) })
	return c
}

// InEachWSForm is WithWSServer, once for each form that begins with Ready or Down.
func InEachWSForm(t *testing.T, h conntest.Handler, test func(t *testing.T, server *WSServer)) {
	t.Helper()
	for name, form := range serverForms {
		t.Run(name, func(t *testing.T) {
			WithWSServer(t, h, func(t *testing.T, server *WSServer) {
				server.Form = form
				test(t, server)
			})
		})
	}
}

// Ready starts a Conn, brings it into the form of s, and waits until its session is ready and the server
// knows of it.
func (s *WSServer) Ready(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	o = s.Form.options(t, o)
	c := s.Open(t, o)
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	synctest.Wait()
	for n := range s.Form.Rotations {
		c.Rotate(n+1, reconnect.Advice{})
		wantRotated(t, c, o, n+2)
	}
	s.Session, s.Started = s.Form.Rotations+1, time.Now()
	return c
}

// Down is like Ready, but the session was stable and is lost. o must not have OnMessage.
func (s *WSServer) Down(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c := s.Ready(t, o)
	time.Sleep(time.Minute)
	s.Network.ResetAll(WSAddr)
	synctest.Wait()
	s.Started = time.Now()
	require.NotEqual(t, reconnect.StateReady, c.State())
	WantSeam(t, c)
	return c
}

// Pipe returns the one live connection.
func (s *WSServer) Pipe(t *testing.T) *conntest.Pipe {
	t.Helper()
	pipes := s.Network.Conns(WSAddr)
	require.Len(t, pipes, 1)
	return pipes[0]
}

// MessageLog is a server that notes what each connection brings: "3 x 100000" for a message of
// 100000 bytes with the name 3, and "3 cut" for part of one.
type MessageLog struct {
	mu    sync.Mutex // guards lines
	lines [][]string // for each connection
}

func (l *MessageLog) Serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	l.mu.Lock()
	n := len(l.lines)
	l.lines = append(l.lines, []string{})
	l.mu.Unlock()
	c.SetReadLimit(-1)
	for {
		_, r, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := io.ReadAll(r)
		name, _, _ := strings.Cut(string(data), " ")
		line := fmt.Sprintf("%s x %d", name, len(data))
		if err != nil {
			line = name + " cut"
		}
		l.mu.Lock()
		l.lines[n] = append(l.lines[n], line)
		l.mu.Unlock()
	}
}

func (l *MessageLog) All() [][]string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([][]string{}, l.lines...)
}
