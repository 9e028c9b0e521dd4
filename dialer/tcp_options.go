package dialer

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// TCPOptions says how a TCP connection is made. The zero value is right for
// most programs.
type TCPOptions struct {
	// KeepAlive is the kernel's probing of an idle connection. It finds a dead
	// peer only while nothing waits to be acknowledged. Zero: on, 15 s idle, 15 s
	// between probes, 9 probes, or a third of UserTimeout where that is set.
	// Off: net.KeepAliveConfig{Idle: -1}.
	KeepAlive net.KeepAliveConfig

	// UserTimeout is how long what was sent may stay unacknowledged before the
	// kernel gives the connection up (TCP_USER_TIMEOUT, RFC 5482), which without
	// it takes about 15 minutes. It overrides the number of keepalive probes, so
	// it must leave room for two: at least KeepAlive.Idle + 2 KeepAlive.Interval.
	// Default: that sum, which is 45 s. Negative: the kernel's own. Linux only.
	UserTimeout time.Duration

	// Resolver finds the addresses of a host, anew for every dial.
	// Default: net.DefaultResolver.
	Resolver Resolver

	// LocalAddr is the address to dial from; only addresses of its family are
	// tried then. Default: the kernel's choice.
	LocalAddr netip.Addr

	// Control is called with each new socket before it connects, as in
	// [net.Dialer]. It may be called from several goroutines at once.
	// Default: none.
	Control func(network, address string, c syscall.RawConn) error
}

// Resolver finds the addresses of a host. [net.Resolver] is one. It is called
// from several goroutines at once, must return when ctx ends, and network is
// "ip", "ip4" or "ip6".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// keepAliveDefault is what Go's net package uses for idle and interval.
const keepAliveDefault = 15 * time.Second

func (o *TCPOptions) validate() error {
	if o.UserTimeout <= 0 {
		return nil
	}
	if d := o.withDefaults(); d.KeepAlive.Enable && o.UserTimeout < probing(d.KeepAlive) {
		return fmt.Errorf("UserTimeout: %v is less than KeepAlive.Idle + 2 KeepAlive.Interval (%v)", o.UserTimeout, probing(d.KeepAlive))
	}
	return nil
}

func (o *TCPOptions) withDefaults() TCPOptions {
	d := *o
	if d.KeepAlive == (net.KeepAliveConfig{}) {
		d.KeepAlive.Enable = true
		if d.UserTimeout > 0 {
			// The kernel counts in whole seconds.
			third := max(d.UserTimeout/3, time.Second).Truncate(time.Second)
			d.KeepAlive.Idle, d.KeepAlive.Interval = third, third
		}
	}
	if d.KeepAlive.Idle == 0 {
		d.KeepAlive.Idle = keepAliveDefault
	}
	if d.KeepAlive.Interval == 0 {
		d.KeepAlive.Interval = keepAliveDefault
	}
	if d.UserTimeout == 0 {
		d.UserTimeout = 3 * keepAliveDefault
		if d.KeepAlive.Enable {
			d.UserTimeout = probing(d.KeepAlive)
		}
	}
	if d.Resolver == nil {
		d.Resolver = net.DefaultResolver
	}
	return d
}

// probing is how long keepalive needs to lose two probes. A negative time
// leaves the kernel's, which no user timeout should wait for.
func probing(k net.KeepAliveConfig) time.Duration {
	idle, interval := k.Idle, k.Interval
	if idle < 0 {
		idle = keepAliveDefault
	}
	if interval < 0 {
		interval = keepAliveDefault
	}
	return idle + 2*interval
}

// dial resolves the host of address and connects to whichever of its addresses
// answers first. Every call draws its own order with shuffle, so that neither a
// black hole nor the resolver's order decides where all clients go.
func (o *TCPOptions) dial(ctx context.Context, shuffle shuffler, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := o.withDefaults()
	if _, err := netip.ParseAddr(host); err == nil {
		return d.connect(ctx, network, address)
	}
	addrs, err := d.Resolver.LookupNetIP(ctx, d.family(network), host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no suitable address", Name: host, IsNotFound: true}
	}
	addresses := make([]string, 0, len(addrs))
	for _, a := range interleave(addrs, shuffle) {
		addresses = append(addresses, net.JoinHostPort(a.String(), port))
	}
	return race(ctx, addresses, func(ctx context.Context, address string) (net.Conn, error) {
		return d.connect(ctx, network, address)
	})
}

// family is the resolver's network for a socket's network.
func (o *TCPOptions) family(network string) string {
	switch {
	case strings.HasSuffix(network, "4") || o.LocalAddr.Is4():
		return "ip4"
	case strings.HasSuffix(network, "6") || o.LocalAddr.Is6():
		return "ip6"
	}
	return "ip"
}

// connect opens one socket to one address. The options have their defaults.
func (o *TCPOptions) connect(ctx context.Context, network, address string) (net.Conn, error) {
	n := net.Dialer{KeepAliveConfig: o.KeepAlive, Control: o.control}
	if !o.KeepAlive.Enable {
		n.KeepAlive = -1
	}
	if o.LocalAddr.IsValid() {
		n.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.LocalAddr, 0))
	}
	return n.DialContext(ctx, network, address)
}

func (o *TCPOptions) control(network, address string, c syscall.RawConn) error {
	var err error
	if o.UserTimeout > 0 {
		err = setUserTimeout(c, o.UserTimeout)
	}
	if err == nil && o.Control != nil {
		err = o.Control(network, address, c)
	}
	return err
}

// shuffler has the signature of rand.Shuffle.
type shuffler func(n int, swap func(i, j int))

// interleave puts addresses in the order to try them: each family shuffled, the
// families taking turns (RFC 8305, section 4), the family that the resolver put
// first going first.
func interleave(addrs []netip.Addr, shuffle shuffler) []netip.Addr {
	var turns [2][]netip.Addr
	firstIs4 := addrs[0].Unmap().Is4()
	seen := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		a = a.Unmap()
		if seen[a] {
			continue
		}
		seen[a] = true
		if a.Is4() == firstIs4 {
			turns[0] = append(turns[0], a)
		} else {
			turns[1] = append(turns[1], a)
		}
	}
	for _, t := range turns {
		shuffle(len(t), func(i, j int) { t[i], t[j] = t[j], t[i] })
	}
	var order []netip.Addr
	for i := range max(len(turns[0]), len(turns[1])) {
		for _, t := range turns {
			if i < len(t) {
				order = append(order, t[i])
			}
		}
	}
	return order
}
