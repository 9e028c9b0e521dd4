package dialer

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/stretchr/testify/require"
)

// names is a resolver that knows one answer, for whatever it is asked.
type names struct {
	addrs []netip.Addr

	mu       sync.Mutex
	networks []string // that it was asked for
}

func (n *names) LookupNetIP(_ context.Context, network, _ string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.networks = append(n.networks, network)
	return n.addrs, nil
}

func listen(t *testing.T, address string) (port string) {
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

func addrs(texts ...string) (a []netip.Addr) {
	for _, text := range texts {
		a = append(a, netip.MustParseAddr(text))
	}
	return a
}

func (o *TCPOptions) try(t *testing.T, address string) net.Conn {
	nc, err := o.forMessages().dial(t.Context(), backoff.Rand(), none, 0, "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	return nc
}

func TestNamesAreLookedUpAnewForEachDial(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	n := &names{addrs: addrs("127.0.0.1")}
	o := &TCPOptions{LookupNetIP: n.LookupNetIP}
	o.try(t, "name.example:"+port)
	o.try(t, "name.example:"+port)
	require.ElementsMatch(t, []string{"ip4", "ip6", "ip4", "ip6"}, n.networks)
}

func TestAnAddressIsNotLookedUp(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	n := &names{}
	(&TCPOptions{LookupNetIP: n.LookupNetIP}).try(t, "127.0.0.1:"+port)
	require.Empty(t, n.networks)
}

func TestANameWithoutAddressIsADNSError(t *testing.T) {
	o := (&TCPOptions{LookupNetIP: (&names{}).LookupNetIP}).withDefaults()
	_, err := o.dial(t.Context(), backoff.Rand(), none, 0, "tcp", "name.example:1")
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
}

func TestLocalAddrIsDialedFromAndChoosesTheFamily(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	n := &names{addrs: addrs("127.0.0.1")}
	nc := (&TCPOptions{LookupNetIP: n.LookupNetIP, LocalAddr: netip.MustParseAddr("127.0.0.9")}).try(t, "name.example:"+port)
	require.Equal(t, "127.0.0.9", nc.LocalAddr().(*net.TCPAddr).IP.String())
	require.Equal(t, []string{"ip4"}, n.networks)
	require.Equal(t, "ip6", (&TCPOptions{LocalAddr: netip.IPv6Loopback()}).family("tcp"))
}

// As net.Conn.LocalAddr and netip.AddrFromSlice give it.
func TestALocalAddrOfIPv4MayBeMapped(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	n := &names{addrs: addrs("127.0.0.1")}
	nc := (&TCPOptions{LookupNetIP: n.LookupNetIP, LocalAddr: netip.MustParseAddr("::ffff:127.0.0.9")}).try(t, "name.example:"+port)
	require.Equal(t, "127.0.0.9", nc.LocalAddr().(*net.TCPAddr).IP.String())
	require.Equal(t, []string{"ip4"}, n.networks)
}

func TestControlSeesEachSocket(t *testing.T) {
	port := listen(t, "127.0.0.1:0")
	var seen string
	o := &TCPOptions{Control: func(_, address string, _ syscall.RawConn) error { seen = address; return nil }}
	o.try(t, "127.0.0.1:"+port)
	require.Equal(t, "127.0.0.1:"+port, seen)
}

func TestUserTimeoutLeavesRoomForTwoProbes(t *testing.T) {
	second := time.Second
	for name, c := range map[string]struct {
		given TCPOptions
		want  time.Duration
		keep  net.KeepAliveConfig
	}{
		"default":     {TCPOptions{}, 45 * second, net.KeepAliveConfig{Enable: true, Idle: 15 * second, Interval: 15 * second}},
		"by timeout":  {TCPOptions{UserTimeout: 10 * second}, 10 * second, net.KeepAliveConfig{Enable: true, Idle: 3 * second, Interval: 3 * second}},
		"by probes":   {TCPOptions{KeepAlive: net.KeepAliveConfig{Enable: true, Idle: second}}, 31 * second, net.KeepAliveConfig{Enable: true, Idle: second, Interval: 15 * second}},
		"both off":    {TCPOptions{UserTimeout: -1, KeepAlive: net.KeepAliveConfig{Idle: -1}}, -1, net.KeepAliveConfig{Idle: -1, Interval: 15 * second}},
		"probing off": {TCPOptions{KeepAlive: net.KeepAliveConfig{Idle: -1}}, 45 * second, net.KeepAliveConfig{Idle: -1, Interval: 15 * second}},
		"kernel's":    {TCPOptions{KeepAlive: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1}}, 45 * second, net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.given.validate())
			o := c.given.forMessages()
			require.Equal(t, c.want, o.UserTimeout)
			require.Equal(t, c.keep, o.KeepAlive)
		})
	}
}
