package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// wsServer is a real WebSocket server on a network in memory, and a dialer that goes there.
type wsServer struct {
	*conntest.Server
	network *conntest.Network
	dialer  *dialer.WebSocket
	start   time.Time // when the test began, or ready or down returned

	form    form
	session uint64 // the number of the session that ready has returned
}

const wsAddr = "feed.test:80"

// withWSServer runs a test in virtual time. In the end, when every Conn of it is closed, no
// connection may be left open (promise 11).
func withWSServer(t *testing.T, h conntest.Handler, test func(t *testing.T, server *wsServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		server := &wsServer{Server: conntest.NewServer(n, wsAddr, h), network: n, start: time.Now()}
		server.dialer = &dialer.WebSocket{URL: "ws://feed.test/v1", DialContext: n.DialContext}
		t.Cleanup(func() {
			if open := n.Open(); open > 0 {
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

func (s *wsServer) now() time.Duration { return time.Since(s.start) }

// open starts a Conn to the server. The end of the test closes it.
func (s *wsServer) open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(s.dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { closeAndWait(c) })
	return c
}

// inEachWSForm is withWSServer, once for each form that begins with ready or down.
func inEachWSForm(t *testing.T, h conntest.Handler, test func(t *testing.T, server *wsServer)) {
	t.Helper()
	for name, form := range serverForms {
		t.Run(name, func(t *testing.T) {
			withWSServer(t, h, func(t *testing.T, server *wsServer) {
				server.form = form
				test(t, server)
			})
		})
	}
}

// ready starts a Conn, brings it into the form of s, and waits until its session is ready and the server
// knows of it.
func (s *wsServer) ready(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	o = s.form.options(t, o)
	c := s.open(t, o)
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	synctest.Wait()
	for n := range s.form.rotations {
		c.Rotate(n+1, reconnect.Advice{})
		wantRotated(t, c, o, n+2)
	}
	s.session, s.start = s.form.rotations+1, time.Now()
	return c
}

// down is like ready, but the session was stable and is lost. o must not have OnMessage.
func (s *wsServer) down(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c := s.ready(t, o)
	time.Sleep(time.Minute)
	s.network.ResetAll(wsAddr)
	synctest.Wait()
	s.start = time.Now()
	require.NotEqual(t, reconnect.StateReady, c.State())
	wantSeam(t, c)
	return c
}

// pipe returns the one live connection.
func (s *wsServer) pipe(t *testing.T) *conntest.Pipe {
	t.Helper()
	pipes := s.network.Conns(wsAddr)
	require.Len(t, pipes, 1)
	return pipes[0]
}

// messageLog is a server that notes what each connection brings: "3 x 100000" for a message of
// 100000 bytes with the name 3, and "3 cut" for part of one.
type messageLog struct {
	mu    sync.Mutex // guards lines
	lines [][]string // for each connection
}

func (l *messageLog) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
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

func (l *messageLog) all() [][]string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([][]string{}, l.lines...)
}

// named returns a message of so many bytes that begins with its name.
func named(name string, size int) conn.Message {
	return text(name + " " + strings.Repeat("x", size-len(name)-1))
}

// raceEnabled reports whether the test was built with -race.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
