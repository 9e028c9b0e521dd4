package conn_test

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// peer is the other end of a slow link: it receives and sends one message.
type peer struct {
	receive func() (size int, err error)
	send    func(data []byte) error
}

// slowLinks has each way in which the bytes of a message go through the package. Each opens a connection
// with default limits.
var slowLinks = map[string]func(t *testing.T) (conn.Conn, *conntest.Pipe, peer){
	"WebSocket": func(t *testing.T) (conn.Conn, *conntest.Pipe, peer) {
		return slowWebSocket(t, false, false)
	},
	"compressed WebSocket": func(t *testing.T) (conn.Conn, *conntest.Pipe, peer) {
		return slowWebSocket(t, true, false)
	},
	"WebSocket over TLS": func(t *testing.T) (conn.Conn, *conntest.Pipe, peer) {
		return slowWebSocket(t, false, true)
	},
	"Framed":          func(t *testing.T) (conn.Conn, *conntest.Pipe, peer) { return slowFramed(t, false) },
	"Framed over TLS": func(t *testing.T) (conn.Conn, *conntest.Pipe, peer) { return slowFramed(t, true) },
}

func slowWebSocket(t *testing.T, compressed, secure bool) (conn.Conn, *conntest.Pipe, peer) {
	accepted := make(chan *websocket.Conn, 1)
	v := newWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		accepted <- c
		<-ctx.Done()
	})
	mode := websocket.CompressionDisabled
	if compressed {
		mode = websocket.CompressionNoContextTakeover
	}
	v.server.Options = &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: mode}
	var wire conn.Wire
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := v.DialContext(ctx, network, addr)
		if err == nil && secure {
			nc = secured(nc)
		}
		return wire.Tap(nc), err
	}
	if secure {
		v.server.TLS = serverTLS()
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	ws, _, err := websocket.Dial(t.Context(), "ws://"+serverAddr, &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: wire.Transport(transport)},
		CompressionMode: mode,
	})
	require.NoError(t, err)
	c, err := conn.NewWebSocket(ws, &wire, nil)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	far := <-accepted
	far.SetReadLimit(-1)
	return c, v.Conns(serverAddr)[0], peer{
		receive: func() (int, error) {
			_, data, err := far.Read(context.Background())
			return len(data), err
		},
		send: func(data []byte) error { return far.Write(context.Background(), websocket.MessageBinary, data) },
	}
}

func slowFramed(t *testing.T, secure bool) (conn.Conn, *conntest.Pipe, peer) {
	client, server, pipe := connect(t)
	client = new(conn.Wire).Tap(client)
	if secure {
		client, server = shakeHands(t, client, server, serverTLS())
	}
	f := conn.LengthPrefix{Size: 4}
	c, err := conn.NewFramed(client, f, nil)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	in := bufio.NewReader(server)
	return c, pipe, peer{
		receive: func() (int, error) {
			data, err := f.ReadFrame(in, nil, 1<<30)
			return len(data), err
		},
		send: func(data []byte) error {
			frame, err := f.AppendFrame(nil, data)
			if err == nil {
				_, err = server.Write(frame)
			}
			return err
		},
	}
}

// noise returns n bytes that no compression makes smaller.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{1}), data) // never fails
	return data
}

// onSlowLinks runs test over each slow link, in a bubble. The link carries rate bytes per second in each direction.
func onSlowLinks(t *testing.T, rate int, test func(t *testing.T, c conn.Conn, p peer)) {
	for name, open := range slowLinks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, pipe, p := open(t)
				pipe.Window(conntest.Both, 16<<10)
				pipe.Trickle(conntest.Both, rate/10, second/10)
				test(t, c, p)
			})
		})
	}
}

// 256 KiB at 4 kB/s take 66 s, which is longer than each limit of a message. The peer is silent meanwhile, but the
// room that it makes shows that it is alive.
func TestMessageThatProgressesIsWritten(t *testing.T) {
	onSlowLinks(t, 4000, func(t *testing.T, c conn.Conn, p peer) {
		write := background(func() error { return c.Write(conn.BinaryMessage(noise(256 << 10))) })
		size := 0
		receive := background(func() (err error) { size, err = p.receive(); return err })
		for range 60 {
			time.Sleep(second)
			require.Less(t, c.(conn.Transport).Silence(), 17*second) // twice the time of 32 KiB
		}
		require.NoError(t, receive())
		require.Equal(t, 256<<10, size)
		require.NoError(t, write())
	})
}

func TestMessageThatProgressesIsRead(t *testing.T) {
	onSlowLinks(t, 1000, func(t *testing.T, c conn.Conn, p peer) { // 262 s
		send := background(func() error { return p.send(noise(256 << 10)) })
		m, err := c.Read(nil)
		require.NoError(t, err)
		require.Len(t, m.Data, 256<<10)
		require.NoError(t, send())
	})
}

// A message that began fast is cut as early as one that has never moved.
func TestStandstillInsideMessageIsCut(t *testing.T) {
	for name, open := range slowLinks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _, _ := open(t)
				write := background(func() error { return c.Write(conn.BinaryMessage(noise(1 << 20))) })
				takes(t, 10*second, func() { // the window is full
					require.ErrorAs(t, write(), new(*conn.SlowMessageError))
				})
				require.NoError(t, c.CloseNow())

				c, pipe, p := open(t)
				pipe.Trickle(conntest.ToClient, 100_000, second)
				read := background(func() error { _, err := c.Read(nil); return err })
				send := background(func() error { return p.send(noise(1 << 20)) })
				time.Sleep(5 * second)
				pipe.Stall(conntest.ToClient)
				stalled := time.Now()
				require.ErrorAs(t, read(), new(*conn.SlowMessageError))
				require.LessOrEqual(t, time.Since(stalled), 60*second)
				require.Greater(t, time.Since(stalled), 58*second) // the last part had begun
				require.Error(t, send())
			})
		})
	}
}

// A peer that trickles cannot hold a message for ever: the floors are 3.3 kB/s and 550 B/s.
func TestTrickleIsCut(t *testing.T) {
	onSlowLinks(t, 3000, func(t *testing.T, c conn.Conn, p peer) {
		write := background(func() error { return c.Write(conn.BinaryMessage(noise(256 << 10))) })
		_, err := p.receive()
		require.Error(t, err)
		require.ErrorAs(t, write(), new(*conn.SlowMessageError))
	})
	onSlowLinks(t, 500, func(t *testing.T, c conn.Conn, p peer) {
		send := background(func() error { return p.send(noise(256 << 10)) })
		_, err := c.Read(nil)
		require.ErrorAs(t, err, new(*conn.SlowMessageError))
		require.Error(t, send())
	})
}
