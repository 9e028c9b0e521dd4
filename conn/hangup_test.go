package conn_test

import (
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// The end stands behind data that nobody reads.
func TestHungUpSeesTheEndWithoutReading(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the state of a socket")
	}
	ends := map[string]func(net.Conn){
		"FIN":   func(peer net.Conn) { peer.Close() },
		"reset": func(peer net.Conn) { bottom(peer).(*net.TCPConn).SetLinger(0); bottom(peer).Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			overSockets(t, conn.Lines{}, nil, func(t *testing.T, c *conn.Framed, peer net.Conn) {
				_, err := io.WriteString(peer, "unread\n")
				require.NoError(t, err)
				require.False(t, c.HungUp())
				end(peer)
				require.Eventually(t, c.HungUp, time.Minute, time.Millisecond)
			})
		})
	}
}

// bottom returns the socket under nc.
func bottom(nc net.Conn) net.Conn {
	if l, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return l.NetConn()
	}
	return nc
}

// unknown is a net.Conn whose socket cannot be asked.
type unknown struct{ net.Conn }

func (unknown) SyscallConn() (syscall.RawConn, error) { return nil, net.ErrClosed }

func TestSocketWithUnknownStateHasNotHungUp(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	c, err := conn.NewFramed(unknown{client}, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	require.False(t, c.HungUp())
}

func TestHungUpSeesTheEndOfAHalfClosedConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the state of a socket")
	}
	client, server := sockets(t, false, false)
	c, err := conn.NewFramed(client, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	require.NoError(t, c.CloseWrite())
	require.False(t, c.HungUp())
	server.Close()
	require.Eventually(t, c.HungUp, time.Minute, time.Millisecond)
}

func TestHungUpAsksAConnectionThatIsNoSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := framed(t, conn.Lines{}, nil)
		s.send(t, "unread\n")
		s.pipe.Latency(conntest.ToClient, second)
		s.peer.Close()
		require.False(t, s.HungUp(), "it is under way")
		time.Sleep(2 * second)
		require.True(t, s.HungUp())
		m, err := s.Read(nil)
		require.NoError(t, err)
		require.Equal(t, "unread", string(m.Data))
	})
}

func TestHungUpIsFalseWhereNobodyKnows(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c, err := conn.NewFramed(near, conn.Lines{}, nil)
	require.NoError(t, err)
	require.False(t, c.HungUp())
	require.NoError(t, c.CloseNow())
	require.False(t, c.HungUp())
}
