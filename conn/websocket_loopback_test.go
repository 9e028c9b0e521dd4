package conn

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// loopback dials a server on a real socket and returns both ends. Both are cut by
// the cleanup.
func loopback(t testing.TB, secure bool, o *WebSocketOptions) (*WebSocket, *websocket.Conn) {
	accepted := make(chan *websocket.Conn, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err == nil {
			accepted <- ws
		}
	}))
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)

	var wire Wire
	dialer := &net.Dialer{}
	tapped := func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wire.Tap(nc), nil
	}
	rt := &http.Transport{DialContext: tapped, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	ws, _, err := websocket.Dial(context.Background(), server.URL, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: wire.Transport(rt)},
	})
	require.NoError(t, err)
	c, err := NewWebSocket(ws, &wire, o)
	require.NoError(t, err)
	peer := <-accepted
	t.Cleanup(func() { c.CloseNow(); peer.CloseNow() })
	return c, peer
}

func TestBothWaysOverRealSockets(t *testing.T) {
	for _, secure := range []bool{false, true} {
		c, peer := loopback(t, secure, nil)
		data := make([]byte, 1<<20)
		write := background(func() error { return c.Write(Message{Binary, data}) })
		peer.SetReadLimit(-1)
		_, got, err := peer.Read(t.Context())
		require.NoError(t, err)
		require.NoError(t, write())
		write = background(func() error { return peer.Write(t.Context(), websocket.MessageBinary, got) })
		m, err := c.Read(nil)
		require.NoError(t, err)
		require.Len(t, m.Data, len(data))
		require.NoError(t, write())
		require.Less(t, c.Silence(), time.Minute)

		wait := background(func() error { return c.Close(t.Context(), 1000, "") })
		_, _, err = peer.Read(t.Context())
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
		require.NoError(t, wait())
	}
}

// tls.Conn.Close would spend 5 s on a peer that reads nothing.
func TestCloseNowOfAStuckTLSConnectionDoesNotWait(t *testing.T) {
	c, _ := loopback(t, true, &WebSocketOptions{Limits: Limits{WriteTimeout: 200 * time.Millisecond}})
	var err error
	for err == nil { // until the socket is full
		err = c.Write(Message{Binary, make([]byte, 1<<20)})
	}
	require.ErrorAs(t, err, new(*SlowMessageError))
	start := time.Now()
	require.NoError(t, c.CloseNow())
	require.Less(t, time.Since(start), 4*time.Second, "crypto/tls waits for 5 s")
}

func TestHangUpOverTLSIsEOF(t *testing.T) {
	c, peer := loopback(t, true, nil)
	require.NoError(t, peer.CloseNow())
	_, err := c.Read(nil)
	require.ErrorIs(t, err, io.EOF)
}
