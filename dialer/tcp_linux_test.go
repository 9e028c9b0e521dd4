package dialer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Fact 11: keepalive alone does not find a dead peer while data is unacknowledged.
func TestUserTimeoutAndKeepAliveAreSet(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	for name, c := range map[string]struct {
		options              TCPOptions
		user, keep, interval int
	}{
		"default":  {TCPOptions{}, 45000, 1, 15},
		"explicit": {TCPOptions{UserTimeout: 9 * time.Second}, 9000, 1, 3},
		"off":      {TCPOptions{UserTimeout: -1, KeepAlive: net.KeepAliveConfig{Idle: -1}}, 0, 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := c.options.try(t, "127.0.0.1:"+port).(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			option := func(level, name int) (value int) {
				require.NoError(t, raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) }))
				require.NoError(t, err)
				return value
			}
			require.Equal(t, c.user, option(syscall.IPPROTO_TCP, tcpUserTimeout))
			require.Equal(t, c.keep, option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE))
			if c.interval >= 0 {
				require.Equal(t, c.interval, option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL))
			}
		})
	}
}

// The options of a socket are those of its dialer.
func TestTCPSetsTheOptionsOfItsSocket(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	var user int
	d := &TCP{Address: "127.0.0.1:" + port, Framer: conn.Lines{}}
	d.Socket.UserTimeout = 9 * time.Second
	d.Socket.Control = func(_, _ string, c syscall.RawConn) error { // last of all
		return c.Control(func(fd uintptr) { user, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout) })
	}
	c, err := d.Dial(t.Context())
	require.NoError(t, err)
	defer c.CloseNow()
	require.Equal(t, 9000, user)
}

// blackHole is a listener on host whose backlog is full: the kernel answers no
// further SYN.
func blackHole(t *testing.T, host [4]byte) (port int) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: host}))
	require.NoError(t, syscall.Listen(fd, 0))
	bound, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	at := bound.(*syscall.SockaddrInet4)
	for range 10 {
		nc, err := net.DialTimeout("tcp", (&net.TCPAddr{IP: host[:], Port: at.Port}).String(), 100*time.Millisecond)
		if err != nil {
			return at.Port
		}
		t.Cleanup(func() { nc.Close() })
	}
	t.Skip("the backlog of this kernel does not fill")
	return 0
}

// Fact 12, on real sockets: net.Dialer would spend the whole deadline on the
// first address.
func TestABlackHoledAddressDoesNotStarveTheSecond(t *testing.T) {
	port := blackHole(t, [4]byte{127, 0, 0, 2})
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3), Port: port})
	require.NoError(t, err)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(acceptOnce)}}
	s.Start()
	defer s.Close()

	d := &WebSocket{URL: "ws://two.example:" + s.URL[len("http://127.0.0.3:"):]}
	d.TCP.Resolver = &names{addrs: addrs("127.0.0.2", "127.0.0.3")}
	for range 4 { // whatever the order that is drawn
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		c, err := d.Dial(ctx)
		cancel()
		require.NoError(t, err)
		c.CloseNow()
	}
}

func TestContextEndsConnectingOnARealSocket(t *testing.T) {
	port := blackHole(t, [4]byte{127, 0, 0, 1})
	d := &WebSocket{URL: fmt.Sprintf("ws://127.0.0.1:%d/", port)}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := d.Dial(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), backoff.DefaultConnect, "our own limit")
}

func acceptOnce(w http.ResponseWriter, r *http.Request) {
	if c, err := websocket.Accept(w, r, nil); err == nil {
		c.CloseNow()
	}
}
