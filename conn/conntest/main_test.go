package conntest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn/conntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const addr = "feed.test:80"

// connect returns both ends of one connection and the pipe between them.
func connect(t *testing.T, n *conntest.Network) (client, server net.Conn, p *conntest.Pipe) {
	t.Helper()
	l, err := n.Listen(addr)
	require.NoError(t, err)
	client, err = n.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server, n.Conns(addr)[0]
}

// dial opens a WebSocket to the server on addr over a transport of its own.
func dial(ctx context.Context, n *conntest.Network) (*websocket.Conn, *http.Response, error) {
	return websocket.Dial(ctx, "ws://feed.test/", &websocket.DialOptions{HTTPClient: clientOf(n)})
}

// clientOf returns a client with a transport of its own.
func clientOf(n *conntest.Network) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.DialContext, DisableKeepAlives: true}}
}

// mustDial is dial for a server that accepts.
func mustDial(t *testing.T, n *conntest.Network) *websocket.Conn {
	t.Helper()
	c, _, err := dial(t.Context(), n)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

// write writes s in one Write.
func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	n, err := io.WriteString(c, s)
	require.NoError(t, err)
	require.Equal(t, len(s), n)
}

// read reads as many bytes as want has, and requires that they are want.
func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, want, string(b))
}

// readErr returns the error of one Read, and requires that it has no data.
func readErr(t *testing.T, c net.Conn) error {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	return err
}

// writeErr returns the error of one Write of one byte.
func writeErr(c net.Conn) error {
	_, err := c.Write([]byte{0})
	return err
}
