package dialer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// framedServer is a server of lines on a network in memory, which sends each line back,
// and a dialer that goes there.
type framedServer struct {
	network *conntest.Network
	dialer  *Framed
}

const framedAddr = "example.com:7"

// withFramedServer runs test in a bubble of virtual time, and demands that no
// connection is open in the end. With TLS the certificate is for example.com and
// the dialer trusts it.
func withFramedServer(t *testing.T, secure bool, test func(t *testing.T, x *framedServer)) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s.Close()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		x := &framedServer{network: n, dialer: &Framed{Address: framedAddr, Framer: conn.Lines{}, DialContext: n.DialContext}}
		l, err := n.Listen(framedAddr)
		require.NoError(t, err)
		if secure {
			x.dialer.TLS = &tls.Config{RootCAs: roots}
			l = tls.NewListener(l, &tls.Config{Certificates: s.TLS.Certificates})
		}
		go echo(l)
		defer func() { l.Close(); n.ResetAll("") }()
		test(t, x)
		synctest.Wait()
		require.Zero(t, n.Count("").Open, "connections left open")
	})
}

// echo serves each connection of l until it ends.
func echo(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(nc, nc); nc.Close() }()
	}
}

// fail dials and wants an *Error, after this time exactly.
func (x *framedServer) fail(t *testing.T, ctx context.Context, after time.Duration) *Error {
	t.Helper()
	return failToDial(t, ctx, x.dialer, after)
}

// talk sends a line and wants it back.
func talk(t *testing.T, c conn.Conn) {
	t.Helper()
	require.NoError(t, c.Write(helloMessage))
	m, err := c.Read(nil)
	require.NoError(t, err)
	require.Equal(t, "hello", string(m.Data))
}
