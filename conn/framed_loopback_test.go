package conn_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// sockets returns both ends of a connection over real sockets; with TLS both have
// shaken hands. If tapped, a Wire is under the client's end.
func sockets(t testing.TB, secure, tapped bool) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	raw, far := client, server
	t.Cleanup(func() { raw.Close(); far.Close() })
	if tapped {
		client = new(conn.Wire).Tap(client)
	}
	if secure {
		client, server = shakeHands(t, client, server, serverTLS())
	}
	return client, server
}

// serverTLS returns what a server needs, with a certificate that is borrowed.
func serverTLS() *tls.Config {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}

func shakeHands(t testing.TB, client, server net.Conn, config *tls.Config) (near, far *tls.Conn) {
	near = tls.Client(client, &tls.Config{InsecureSkipVerify: true})
	far = tls.Server(server, config)
	shook := background(far.Handshake)
	require.NoError(t, near.Handshake())
	require.NoError(t, shook())
	return near, far
}

// overSockets runs a test over each kind of connection.
func overSockets(t *testing.T, f conn.Framer, o *conn.FramedOptions, test func(t *testing.T, c *conn.Framed, peer net.Conn)) {
	for name, kind := range map[string]struct{ secure, tapped bool }{
		"plain": {}, "tapped": {false, true}, "tls": {true, false}, "tapped tls": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := sockets(t, kind.secure, kind.tapped)
			c, err := conn.NewFramed(client, f, o)
			require.NoError(t, err)
			defer c.CloseNow()
			test(t, c, server)
		})
	}
}

func TestFramedBothWaysOverRealSockets(t *testing.T) {
	overSockets(t, conn.LengthPrefix{}, nil, func(t *testing.T, c *conn.Framed, peer net.Conn) {
		go func() { _, _ = io.Copy(peer, peer); peer.Close() }()
		for _, size := range []int{0, 1, 1000, 1 << 20} {
			data := bytes.Repeat([]byte{byte(size), 'x'}, size/2)
			write := background(func() error { return c.Write(conn.Message{Data: data}) })
			m, err := c.Read(nil)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, m.Data))
			require.NoError(t, write())
		}
		require.Less(t, c.Silence(), time.Minute)
		require.NoError(t, c.Close(t.Context(), 1000, ""))
	})
}

// The peer gets all that was written, and the end of it; then it is waited for.
func TestCloseOverRealSocketsLosesNothing(t *testing.T) {
	overSockets(t, conn.Lines{}, nil, func(t *testing.T, c *conn.Framed, peer net.Conn) {
		for range 1000 {
			require.NoError(t, c.Write(bytesOf("a line")))
		}
		heard := background(func() []byte {
			all, err := io.ReadAll(peer)
			if err != nil {
				all = []byte(err.Error())
			}
			_, _ = peer.Write([]byte("bye\n"))
			peer.Close()
			return all
		})
		require.NoError(t, c.Close(t.Context(), 1000, ""))
		require.Equal(t, bytes.Repeat([]byte("a line\n"), 1000), heard())
	})
}

func TestHangUpOverRealSocketsIsEOF(t *testing.T) {
	overSockets(t, conn.Lines{}, nil, func(t *testing.T, c *conn.Framed, peer net.Conn) {
		_, err := peer.Write([]byte("whole\nha"))
		require.NoError(t, err)
		require.NoError(t, peer.Close())
		_, err = c.Read(nil)
		require.NoError(t, err)
		_, err = c.Read(nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// tls.Conn.Close would spend 5 s on a peer that reads nothing.
func TestCloseNowOfAStuckFramedConnectionDoesNotWait(t *testing.T) {
	o := &conn.FramedOptions{Limits: conn.Limits{WriteTimeout: 200 * time.Millisecond}}
	overSockets(t, conn.LengthPrefix{}, o, func(t *testing.T, c *conn.Framed, _ net.Conn) {
		var err error
		for err == nil { // until the socket is full
			err = c.Write(conn.Message{Data: make([]byte, 1<<20)})
		}
		require.ErrorAs(t, err, new(*conn.SlowMessageError))
		require.NotErrorIs(t, err, conn.ErrNotWritten)
		start := time.Now()
		require.NoError(t, c.CloseNow())
		require.Less(t, time.Since(start), 4*time.Second, "crypto/tls waits for 5 s")
	})
}

// Half a record is life where the Wire is below TLS.
func TestABelowTLSTapHearsWhatIsNoMessageYet(t *testing.T) {
	client, server := sockets(t, true, true)
	c, err := conn.NewFramed(client, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	read := background(func() error { _, err := c.Read(nil); return err })
	time.Sleep(50 * time.Millisecond)
	sent := time.Now()
	_, err = server.(*tls.Conn).NetConn().Write([]byte{23, 3, 3, 0, 100, 1})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.Silence() < time.Since(sent) }, time.Minute, time.Millisecond)
	require.NoError(t, c.CloseNow())
	require.ErrorIs(t, read(), net.ErrClosed)
}
