package dialer_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestATryThatTimesOutMakesTheNextMorePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{Policy: backoff.WithTimeouts(doubling, backoff.Timeout{}, backoff.Timeout{})})
		n.Fault("", hung)
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.Equal(t, []float64{0, 17, 51, 119}, seconds(n)) // 16+1, 32+2, 64+4, and cut in the fourth
		require.ErrorContains(t, err, "gave up after 4 tries in 2m7s: not connected within 1m4s")
	})
}

func TestConnectTimeoutIsTheLimitOnEachTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{Policy: doubling, ConnectTimeout: time.Second, MaxElapsed: 10 * time.Second})
		n.Fault("", hung)
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.Equal(t, []float64{0, 2, 5}, seconds(n)) // 4 s from 6 s on would end at 10 s
		require.EqualError(t, err, "dial tcp redis.test:6379: gave up after 3 tries in 6s, because the next wait would not end within MaxElapsed (10s): not connected within 1s")
	})
}

// What clients look at: go-redis for *net.OpError, net/http and pgx for Timeout.
func TestErrorsAreThoseOfNetDialer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{Policy: backoff.Limit(doubling, 1, 0)})
		_, err := d.DialContext(t.Context(), "tcp", where)
		e, ok := err.(*net.OpError)
		require.True(t, ok)
		require.Equal(t, []string{"dial", "tcp", where, "tcp"}, []string{e.Op, e.Net, e.Addr.String(), e.Addr.Network()})
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.False(t, e.Timeout())
		n.Fault("", hung)
		_, err = d.DialContext(t.Context(), "tcp", where)
		require.True(t, err.(net.Error).Timeout())
	})
}

func TestAnotherAddressInTheLastErrorIsShown(t *testing.T) {
	inner := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 6379}, Err: syscall.ECONNREFUSED}
	d := &dialer.Dialer{Policy: backoff.Limit(doubling, 0, 1), DialOnce: func(context.Context, string, string) (net.Conn, error) { return nil, inner }}
	synctest.Test(t, func(t *testing.T) { // so that it takes 0s
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.EqualError(t, err, "dial tcp redis.test:6379: gave up after 1 try in 0s: dial tcp 10.0.0.7:6379: connection refused")
	})
}

func TestAnAddressThatCanNeverWorkIsNotTriedAgain(t *testing.T) {
	for _, c := range [][2]string{
		{"tcp", "127.0.0.1"}, {"tcp", "127.0.0.1:70000"}, {"tcp", "127.0.0.1:nosuchport"}, {"tcp", "::1:80:80"},
		{"tcp4", "[::1]:80"}, {"carrier pigeon", "127.0.0.1:1"}, {"udp", "127.0.0.1"},
	} {
		t.Run(c[0]+" "+c[1], func(t *testing.T) {
			tries := 0
			_, err := (&dialer.Dialer{OnProgress: func(p dialer.Progress) { tries = p.Tries }}).DialContext(t.Context(), c[0], c[1])
			_, ok := err.(*net.OpError)
			require.True(t, ok, "%v", err)
			require.NotErrorIs(t, err, backoff.ErrGaveUp)
			require.Equal(t, 1, tries)
		})
	}
}

// fickle is a resolver that does not know the name at first, and never an IPv6 address.
type fickle struct{ lookups atomic.Int32 }

func (f *fickle) LookupNetIP(_ context.Context, network, _ string) ([]netip.Addr, error) {
	if network == "ip6" || f.lookups.Add(1) < 3 {
		return nil, &net.DNSError{Err: "no such host", Name: "redis.test", IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

var quick = &backoff.Exponential{Base: time.Millisecond, Cap: 5 * time.Millisecond}

func TestANameThatIsNotFoundIsLookedUpAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f := &fickle{}
	nc, err := (&dialer.Dialer{Policy: quick, TCP: dialer.TCPOptions{LookupNetIP: f.LookupNetIP}}).DialContext(t.Context(), "tcp", "redis.test:"+port)
	require.NoError(t, err)
	defer nc.Close()
	require.EqualValues(t, 3, f.lookups.Load())
	require.IsType(t, (*net.TCPConn)(nil), nc) // for sendfile, SyscallConn and TLS
}

func TestAnEmptyHostIsThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	nc, err := new(dialer.Dialer).DialContext(t.Context(), "tcp", ":"+port)
	require.NoError(t, err)
	nc.Close()
}

func TestAUnixSocketThatIsNotThereYetIsWaitedFor(t *testing.T) {
	dir, err := os.MkdirTemp("", "unix") // t.TempDir's name may be too long
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	d := &dialer.Dialer{Policy: quick}
	d.OnProgress = func(p dialer.Progress) {
		if p.Tries == 2 && !p.Done {
			l, err := net.Listen("unix", path)
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
		}
	}
	nc, err := d.DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	nc.Close()
}

func TestControlSeesAFreshSocketForEachTry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	sockets := 0
	d := &dialer.Dialer{Policy: backoff.Limit(quick, 4, 0)}
	d.TCP.Control = func(string, string, syscall.RawConn) error { sockets++; return nil }
	_, err = d.DialContext(t.Context(), "tcp", l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Equal(t, 5, sockets)
}

// several is a resolver of one name with nobody at any of its addresses.
type several struct{}

func (several) LookupNetIP(context.Context, string, string) (addrs []netip.Addr, _ error) {
	for last := range byte(9) {
		addrs = append(addrs, netip.AddrFrom4([4]byte{127, 0, 0, last + 1}))
	}
	return addrs, nil
}

func TestRandDrawsTheOrderOfAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.99:0")
	if err != nil {
		t.Skip("this system has one loopback address")
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	var orders [2][]string
	for i := range orders {
		d := &dialer.Dialer{Policy: backoff.Limit(quick, 0, 1), Rand: rand.NewPCG(1, 2), TCP: dialer.TCPOptions{LookupNetIP: several{}.LookupNetIP}}
		d.TCP.Control = func(_, address string, _ syscall.RawConn) error {
			orders[i] = append(orders[i], address) // one after the other, since each is refused
			return nil
		}
		_, err := d.DialContext(t.Context(), "tcp", "redis.test:"+port)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Len(t, orders[i], 9)
	}
	require.Equal(t, orders[0], orders[1])
}

func TestWhatDialOnceCallsPermanentIsReturnedAsNetDialerWould(t *testing.T) {
	_, err := (&dialer.Dialer{DialOnce: func(context.Context, string, string) (net.Conn, error) {
		return nil, backoff.Permanent(io.ErrNoProgress)
	}}).DialContext(t.Context(), "tcp", where)
	require.EqualError(t, err, "dial tcp redis.test:6379: multiple Read calls return no data or error")
	require.Equal(t, io.ErrNoProgress, errors.Unwrap(err))
}

func TestNothingIsLeftOfADialThatWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble would not end with a goroutine or a held dial
		n, d := away(&dialer.Dialer{})
		n.Fault("", conntest.Fault{}, hung)
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(5*time.Second, cancel)
		_, err := d.DialContext(ctx, "tcp", where)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, n.Dials(""), 2)
		require.Equal(t, conntest.Count{MaxDialing: 1, MaxHeld: 1}, n.Count(""))
	})
}

func TestADialFunctionThatMakesNothingIsAnError(t *testing.T) {
	nothing := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	const want = "the dial function returned neither a connection nor an error"
	_, err := (&dialer.Dialer{Policy: backoff.Limit(doubling, 0, 1), DialOnce: nothing}).DialContext(t.Context(), "tcp", where)
	require.ErrorContains(t, err, want)
	_, err = (&dialer.Framed{Address: where, Framer: conn.Lines{}, DialContext: nothing}).Dial(t.Context())
	require.ErrorContains(t, err, want)
	_, err = (&dialer.WebSocket{URL: "ws://" + where, DialContext: nothing}).Dial(t.Context())
	require.ErrorContains(t, err, want)
}
