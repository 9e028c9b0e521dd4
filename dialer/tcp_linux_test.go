package dialer

import (
	"context"
	"fmt"
	"math"
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

// option returns a socket's option.
func option(t *testing.T, nc net.Conn, level, name int) (value int) {
	raw, err := nc.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), level, name) }))
	require.NoError(t, err)
	return value
}

// Keepalive alone does not find a dead peer while data is unacknowledged.
func TestUserTimeoutAndKeepAliveAreSet(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	never := time.Duration(math.MaxInt64)
	for name, c := range map[string]struct {
		options                     TCPOptions
		user, keep, interval, count int
	}{
		"default":  {TCPOptions{}, 45000, 1, 15, 9},
		"explicit": {TCPOptions{UserTimeout: 9 * time.Second}, 9000, 1, 3, 9},
		"most":     {TCPOptions{UserTimeout: never}, math.MaxInt32, 1, 32767, 9},
		"off":      {TCPOptions{UserTimeout: -1, KeepAlive: net.KeepAliveConfig{Idle: -1}}, 0, 0, -1, -1},
		"rare": {TCPOptions{KeepAlive: net.KeepAliveConfig{Enable: true, Idle: never, Interval: never, Count: math.MaxInt}},
			3 * 32767 * 1000, 1, 32767, 127},
	} {
		t.Run(name, func(t *testing.T) {
			nc := c.options.try(t, "127.0.0.1:"+port)
			require.Equal(t, c.user, option(t, nc, syscall.IPPROTO_TCP, tcpUserTimeout))
			require.Equal(t, c.keep, option(t, nc, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE))
			if c.interval >= 0 {
				require.Equal(t, c.interval, option(t, nc, syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL))
				require.Equal(t, c.count, option(t, nc, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT))
			}
		})
	}
}

// A Dialer's peer may make us wait for as long as it likes, a message connection's not.
func TestUserTimeoutIsTheKernelsInADialer(t *testing.T) {
	addr := "127.0.0.1:" + listen(t, "127.0.0.1:0")
	var user []int
	read := func(_, _ string, c syscall.RawConn) error { // called after ours is set
		return c.Control(func(fd uintptr) {
			n, _ := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout)
			user = append(user, n)
		})
	}
	for _, given := range []time.Duration{0, 90 * time.Second, -1} {
		o := TCPOptions{UserTimeout: given, Control: read}
		nc, err := (&Dialer{TCP: o}).DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		nc.Close()
		c, err := (&Framed{Address: addr, Framer: conn.Lines{}, TCP: o}).Dial(t.Context())
		require.NoError(t, err)
		c.CloseNow()
		w := &WebSocket{URL: "ws://" + addr, TCP: o, HandshakeTimeout: time.Millisecond} // nobody answers
		_, err = w.Dial(t.Context())
		require.Error(t, err)
	}
	require.Equal(t, []int{0, 45000, 45000, 90000, 90000, 90000, 0, 0, 0}, user)
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

// net.Dialer would spend the whole deadline on the first address.
func TestABlackHoledAddressDoesNotStarveTheSecond(t *testing.T) {
	port := blackHole(t, [4]byte{127, 0, 0, 2})
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3), Port: port})
	require.NoError(t, err)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(acceptOnce)}}
	s.Start()
	defer s.Close()

	d := &WebSocket{URL: "ws://two.example:" + s.URL[len("http://127.0.0.3:"):]}
	d.TCP.LookupNetIP = (&names{addrs: addrs("127.0.0.2", "127.0.0.3")}).LookupNetIP
	for range 4 { // whatever the order that is drawn
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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

// A socket that is not one of TCP has no such option.
func TestUserTimeoutThatCannotBeSetIsAnError(t *testing.T) {
	l, err := net.Listen("unix", t.TempDir()+"/socket")
	require.NoError(t, err)
	defer l.Close()
	raw, err := l.(*net.UnixListener).SyscallConn()
	require.NoError(t, err)
	require.ErrorContains(t, setUserTimeout(raw, time.Second), "setsockopt TCP_USER_TIMEOUT")
	l.Close()
	require.ErrorIs(t, setUserTimeout(raw, time.Second), net.ErrClosed)
}
