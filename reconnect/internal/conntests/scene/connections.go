//go:build !js

package scene

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Elsewhere is a connection whose local address this machine does not have. The address is
// one for documentation (RFC 5737).
type Elsewhere struct {
	conn.Conn
	conn.Pinger
	conn.Transport
}

// Moved returns a connection of a machine that has moved. c must be one of Alive.
func Moved(c conn.Conn) Elsewhere { return Elsewhere{c, c.(conn.Pinger), c.(conn.Transport)} }

// Quiet returns e without a way to probe it.
func (e Elsewhere) Quiet() conn.Conn {
	return struct {
		conn.Conn
		conn.Transport
	}{e.Conn, e}
}

func (Elsewhere) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// led is a connection that counts the messages which the reader of the Conn has read itself.
type led struct {
	*conn.WebSocket
	whole *atomic.Int32
}

func (l led) ReadWhole(buf []byte) (conn.Message, bool, bool) {
	m, more, whole := l.WebSocket.ReadWhole(buf)
	if whole {
		l.whole.Add(1)
	}
	return m, more, whole
}

// Echo is a server that sends each message back.
func Echo(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	for {
		kind, p, err := c.Read(ctx)
		if err != nil || c.Write(ctx, kind, p) != nil {
			return
		}
	}
}

// WithReader runs a test with a Conn whose reader reads the connection itself, because some messages have come
// one by one. ask sends a message and reads its echo.
func WithReader(
	t *testing.T, o *reconnect.Options,
	test func(t *testing.T, c *reconnect.Conn, s *WSServer, whole *atomic.Int32, ask func(data string)),
) {
	WithWSServer(t, Echo, func(t *testing.T, s *WSServer) {
		whole := new(atomic.Int32)
		c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			ws, err := s.Dialer.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return led{ws.(*conn.WebSocket), whole}, nil
		}), o)
		require.NoError(t, err)
		t.Cleanup(func() { CloseAndWait(c) })
		require.NoError(t, c.AwaitReady(t.Context()))
		buf := make([]byte, 100)
		ask := func(data string) {
			t.Helper()
			read := make(chan error, 1)
			go func() {
				m, err := c.Read(t.Context(), buf)
				if err == nil && string(m.Data) != data {
					err = fmt.Errorf("got %q", m.Data)
				}
				read <- err
			}()
			synctest.Wait() // the reader waits
			require.NoError(t, c.Write(t.Context(), Text(data)))
			require.NoError(t, <-read)
		}
		// mostly 6 times; a Wake of the reader that returns late ends its first read
		for i := 0; whole.Load() < 2; i++ {
			require.Less(t, i, 30, "the reader does not get the turn")
			ask(fmt.Sprint(i))
		}
		test(t, c, s, whole, ask)
	})
}

// AcceptLate is like Accept with a peer that answers each ping after a while, or never if that is
// negative.
func AcceptLate(d *PendingDial, answers time.Duration) *conntest.Fake {
	peer := conntest.NewFake(&d.s.Fake)
	if peer.PongAfter(answers); answers < 0 {
		peer.Mute()
	}
	d.bring(peer)
	return peer
}

// SlowConn is a connection whose writes take a second each.
type SlowConn struct{ conn.Conn }

func (s SlowConn) Write(m conn.Message) error {
	time.Sleep(time.Second)
	return s.Conn.Write(m)
}

// RunConn is the connection of a bare Run: a Closer that notes its closes, each of which takes
// some time.
type RunConn struct {
	Takes   time.Duration
	Closing int // closes under way
	Closed  bool
}

func (p *RunConn) Close() error {
	p.Closing++
	time.Sleep(p.Takes)
	p.Closing--
	p.Closed = true
	return nil
}
