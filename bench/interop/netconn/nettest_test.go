package netconn

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
)

// Both ends of a TCP connection on loopback are NetConns over frames.
func TestANetConnIsANetConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		d := &dialer.Framed{Address: l.Addr().String(), Framer: conn.LengthPrefix{}}
		c, err := d.Dial(t.Context())
		require.NoError(t, err)
		nc, err := l.Accept()
		require.NoError(t, err)
		f, err := conn.NewFramed(nc, conn.LengthPrefix{}, nil)
		require.NoError(t, err)
		c1, c2 = conn.NetConn(c, conn.Binary), conn.NetConn(f, conn.Binary)
		return c1, c2, func() { c1.Close(); c2.Close() }, nil
	})
}
