package conn_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// wsServer is a coder/websocket server on a network in memory.
type wsServer struct {
	*conntest.Network
	server *conntest.Server
}

const serverAddr = "server.test:80"

// newWSServer returns a server that gives its connections to handler. The cleanup
// closes it.
func newWSServer(t testing.TB, handler conntest.Handler) *wsServer {
	n := new(conntest.Network)
	v := &wsServer{n, conntest.NewServer(n, serverAddr, handler)}
	t.Cleanup(v.server.Close)
	return v
}

// dial returns a WebSocket to the server and the connection under it. If wrap is
// not nil, it puts a layer between the two. The cleanup cuts it.
func (v *wsServer) dial(t testing.TB, o *conn.WebSocketOptions, wrap func(net.Conn) net.Conn) (*conn.WebSocket, *conntest.Pipe) {
	var wire conn.Wire
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := v.DialContext(ctx, network, addr)
		if err == nil && wrap != nil {
			nc = wrap(nc)
		}
		return wire.Tap(nc), err
	}
	ws, _, err := websocket.Dial(context.Background(), "ws://"+serverAddr, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: wire.Transport(&http.Transport{DialContext: dial, DisableKeepAlives: true})},
	})
	require.NoError(t, err)
	c, err := conn.NewWebSocket(ws, &wire, o)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	pipes := v.Conns(serverAddr)
	return c, pipes[len(pipes)-1]
}

// secured returns TLS over nc as a user's own DialContext has it.
func secured(nc net.Conn) net.Conn {
	return tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
}
