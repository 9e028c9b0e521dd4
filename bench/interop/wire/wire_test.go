package wire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/interop/internal/server"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = time.Minute

var modes = map[string]websocket.CompressionMode{
	"plain":      websocket.CompressionDisabled,
	"compressed": websocket.CompressionNoContextTakeover,
	"takeover":   websocket.CompressionContextTakeover,
}

func TestPythonServerEchoesPingsAndCloses(t *testing.T) {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		python, err := exec.LookPath(name)
		if err == nil && exec.Command(python, "-c", "import websockets").Run() == nil {
			echoesPingsAndCloses(t, python, "testdata/echo.py")
			return
		}
	}
	t.Skip("there is no Python with the library websockets")
}

func TestNodeServerEchoesPingsAndCloses(t *testing.T) {
	if _, err := os.Stat("../calls/graphql/node_modules/ws"); err != nil {
		t.Skip("ws is not installed: run npm ci in bench/interop/calls/graphql")
	}
	echoesPingsAndCloses(t, server.Find(t, "node", ""), "testdata/echo.mjs")
}

// echoesPingsAndCloses runs a server, and talks to it alone and behind nginx by each mode of compression.
func echoesPingsAndCloses(t *testing.T, command, file string) {
	s := server.New(t, func(port string) *exec.Cmd { return exec.Command(command, file, port) })
	s.Start()
	for place, address := range map[string]string{"direct": s.Address, "nginx": startNginx(t, s.Address)} {
		for name, mode := range modes {
			t.Run(place+"/"+name, func(t *testing.T) {
				c := dial(t, &dialer.WebSocket{URL: "ws://" + address, Compression: mode})
				r := rand.New(rand.NewPCG(1, 1))
				for i := range 100 {
					m := message(r, 200_000)
					require.NoError(t, c.Write(m), "message %d", i)
					require.Equal(t, m, read(t, c), "message %d", i)
					if i%10 == 0 {
						require.NoError(t, c.Write(conn.TextMessage("ping")))
						require.Equal(t, "ponged", string(read(t, c).Data))
					}
				}
				ended := readOn(c)
				require.NoError(t, c.Ping(t.Context()))
				require.NoError(t, c.Write(conn.TextMessage("close 4001 größe")))
				var closed *conn.CloseError
				require.ErrorAs(t, <-ended, &closed)
				require.Equal(t, 4001, closed.Code)
				require.Equal(t, "größe", closed.Reason)

				c = dial(t, &dialer.WebSocket{URL: "ws://" + address, Compression: mode})
				reason := "bye from " + t.Name()
				require.NoError(t, c.Close(t.Context(), 4002, reason))
				awaitOutput(t, s, "closed 4002 "+reason)
			})
		}
	}
}

// The server's protocol lws-mirror-protocol sends each message to all of its clients. It cuts a
// message into parts of 4,096 bytes, so that those here are shorter, and sends all as text. It does
// not agree on compression, because Debian builds the library without.
func TestLibwebsocketsMirrorsAndCloses(t *testing.T) {
	path := server.Find(t, "libwebsockets-test-server", "")
	s := server.New(t, func(port string) *exec.Cmd { return exec.Command(path, "--port="+port) })
	s.Start()
	for place, address := range map[string]string{"direct": s.Address, "nginx": startNginx(t, s.Address)} {
		t.Run(place, func(t *testing.T) {
			c := dial(t, &dialer.WebSocket{
				URL:          "ws://" + address,
				Compression:  websocket.CompressionContextTakeover,
				Subprotocols: []string{"lws-mirror-protocol"},
			})
			r := rand.New(rand.NewPCG(1, 1))
			for i := range 300 {
				m := message(r, 1000)
				require.NoError(t, c.Write(m), "message %d", i)
				require.Equal(t, string(m.Data), string(read(t, c).Data), "message %d", i)
			}
			ended := readOn(c)
			require.NoError(t, c.Ping(t.Context()))
			require.NoError(t, c.Close(t.Context(), 4002, "bye"))
			require.ErrorIs(t, <-ended, net.ErrClosed)
		})
	}
}

// message returns a message of up to most bytes, which compress well or not at all.
func message(r *rand.Rand, most int) conn.Message {
	text := strings.Repeat(fmt.Sprintf("größe %d, ", r.IntN(1000)), 1+r.IntN(most/20))
	if r.IntN(2) == 0 {
		return conn.TextMessage(text)
	}
	data := make([]byte, 1+r.IntN(most))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return conn.BinaryMessage(data)
}

// startNginx returns the address of an nginx in front of a server.
func startNginx(t *testing.T, backend string) string {
	path := server.Find(t, "nginx", "/usr/sbin/nginx")
	config, err := os.ReadFile("testdata/nginx.conf")
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	s := server.New(t, func(port string) *exec.Cmd {
		text := strings.NewReplacer("PORT", port, "BACKEND", backend).Replace(string(config))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return exec.Command(path, "-c", file, "-p", dir, "-e", "stderr")
	})
	s.Start()
	return s.Address
}

func dial(t *testing.T, d *dialer.WebSocket) *conn.WebSocket {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := d.Dial(ctx)
	require.NoError(t, err)
	cut := time.AfterFunc(5*patience, func() { c.CloseNow() }) // so that no Read of the test waits for ever
	t.Cleanup(func() {
		cut.Stop()
		c.CloseNow()
	})
	return c.(*conn.WebSocket)
}

func read(t *testing.T, c conn.Conn) conn.Message {
	m, err := c.Read(nil)
	require.NoError(t, err)
	return m
}

// readOn calls Read in another goroutine, so that the answer to a ping is read, and returns where
// its error comes.
func readOn(c conn.Conn) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := c.Read(nil)
		ended <- err
	}()
	return ended
}

// awaitOutput waits until the server has written a text.
func awaitOutput(t *testing.T, s *server.Server, text string) {
	for deadline := time.Now().Add(patience); !strings.Contains(s.Output(), text); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the server does not write %q", text)
	}
}
