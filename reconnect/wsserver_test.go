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

// venue is a real WebSocket server on a network in memory, and a dialer that
// goes there.
type venue struct {
	*conntest.Server
	network *conntest.Network
	dialer  *dialer.WebSocket
	start   time.Time
}

const venueAddr = "feed.test:80"

// inVenue runs a test in virtual time. In the end, when every Conn of it is
// closed, no connection may be left open (promise 11).
func inVenue(t *testing.T, h conntest.Handler, test func(t *testing.T, v *venue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := &venue{Server: conntest.NewServer(n, venueAddr, h), network: n, start: time.Now()}
		v.dialer = &dialer.WebSocket{URL: "ws://feed.test/v1", DialContext: n.DialContext}
		t.Cleanup(func() {
			if open := n.Open(); open > 0 {
				t.Errorf("connections that the client left open: %d", open)
			}
			v.Close()
			synctest.Wait()
			if left := n.Unclosed(); len(left) > 0 {
				t.Errorf("not closed: %v", left)
			}
		})
		test(t, v)
	})
}

func (v *venue) now() time.Duration { return time.Since(v.start) }

// open starts a Conn to the venue, to be closed when the test ends.
func (v *venue) open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(v.dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { quit(c) })
	return c
}

// ready is open, and waits until a session is ready and the server knows of it.
func (v *venue) ready(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c := v.open(t, o)
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	synctest.Wait()
	return c
}

// pipe returns the one live connection.
func (v *venue) pipe(t *testing.T) *conntest.Pipe {
	t.Helper()
	pipes := v.network.Conns(venueAddr)
	require.Len(t, pipes, 1)
	return pipes[0]
}

// readAll reads the rest of a message as a server does. When a connection ends inside a
// message coder/websocket may return what came as if it were all: its reader takes the
// io.EOF of the connection for that of the message. So what is doubtful, as the beginning of a
// message, was cut if nothing follows it, and the error says why.
func readAll(ctx context.Context, c *websocket.Conn, message io.Reader, doubtful func(data string) bool) (string, error) {
	data, err := io.ReadAll(message)
	if err == nil && doubtful(string(data)) {
		_, _, err = c.Reader(ctx)
	}
	return string(data), err
}

// clerk is a server that notes what each connection brings: "3 x 100000" for a
// message of 100000 bytes with the name 3, and "3 cut" for part of one.
type clerk struct {
	mu    sync.Mutex // guards lines
	lines [][]string // for each connection
}

func (k *clerk) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	k.mu.Lock()
	n := len(k.lines)
	k.lines = append(k.lines, []string{})
	k.mu.Unlock()
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
		k.mu.Lock()
		k.lines[n] = append(k.lines[n], line)
		k.mu.Unlock()
	}
}

func (k *clerk) all() [][]string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([][]string{}, k.lines...)
}

// named is a message of so many bytes that begins with its name.
func named(name string, size int) conn.Message {
	return text(name + " " + strings.Repeat("x", size-len(name)-1))
}

// raceEnabled reports whether the test was built with -race.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
