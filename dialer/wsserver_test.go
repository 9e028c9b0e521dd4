package dialer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// wsServer is a WebSocket server on a network in memory, and a dialer that goes there. The
// URL has every kind of secret in it.
type wsServer struct {
	*conntest.Server
	network *conntest.Network
	dialer  *WebSocket
}

const (
	serverAddr = "server.example:80"
	serverURL  = "ws://user:passwd@server.example/feed?token=qsecret"
)

// withServer runs test in a bubble of virtual time, and demands that no connection
// is open in the end.
func withServer(t *testing.T, test func(t *testing.T, v *wsServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := &wsServer{Server: conntest.NewServer(n, serverAddr, nil), network: n}
		defer v.Close()
		v.dialer = &WebSocket{URL: serverURL, DialContext: n.DialContext}
		test(t, v)
		synctest.Wait()
		require.Zero(t, n.Count("").Open, "connections left open")
	})
}

var helloMessage = conn.Message{Type: conn.Text, Data: []byte("hello")}

// dial succeeds; the connection is cut when test is over.
func (v *wsServer) dial(t *testing.T) *conn.WebSocket {
	c, err := v.dialer.Dial(t.Context())
	require.NoError(t, err)
	return c.(*conn.WebSocket)
}

// recordRefreshes sets a Prepare that appends the Refresh of each attempt to the result.
func (v *wsServer) recordRefreshes() *[]bool {
	list := new([]bool)
	v.dialer.Prepare = func(ctx context.Context, _ *Request) error {
		*list = append(*list, backoff.AttemptFrom(ctx).Refresh)
		return nil
	}
	return list
}

// fail dials and wants an *Error, after this time exactly.
func (v *wsServer) fail(t *testing.T, ctx context.Context, after time.Duration) *Error {
	t.Helper()
	return failToDial(t, ctx, v.dialer, after)
}

// failToDial dials and wants an *Error, after this time exactly.
func failToDial(t *testing.T, ctx context.Context, d dials, after time.Duration) *Error {
	t.Helper()
	start := time.Now()
	c, err := d.Dial(ctx)
	require.Nil(t, c)
	require.Equal(t, after, time.Since(start))
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Same(t, err, error(e))
	return e
}
