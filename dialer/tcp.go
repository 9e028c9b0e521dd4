package dialer

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// TCPOptions are the options of a TCP connection. The zero value has the defaults.
type TCPOptions struct {
	// KeepAlive configures the kernel's probing of an idle connection, which finds a dead peer only
	// while no data is unacknowledged. Zero means on, with 15 s idle, 15 s between probes and 9
	// probes, or a third of UserTimeout if that is set; net.KeepAliveConfig{Idle: -1} means off.
	// Idle and Interval count as 32767 s (9 h) at most and Count as 127, the kernel's limits.
	KeepAlive net.KeepAliveConfig

	// UserTimeout is how long sent data may stay unacknowledged before the kernel gives the
	// connection up (TCP_USER_TIMEOUT, RFC 5482). It overrides the number of keepalive probes, so
	// it must leave time for two: at least KeepAlive.Idle + 2 KeepAlive.Interval. The time in which
	// a live peer's receive window is full counts too. Linux only. Negative means the kernel's own
	// time, about 15 minutes.
	//
	// Default in [WebSocket] and [Framed]: that minimum, which is 45 s. With a WriteTimeout of more
	// than 45 s, set UserTimeout too.
	//
	// Default in [Dialer]: the kernel's own time, because a database may hold back a COPY while it
	// waits for a lock.
	UserTimeout time.Duration

	// LookupNetIP is like the method of a [net.Resolver]. Each dial calls it concurrently for the
	// networks "ip4" and "ip6", or for the only one that can be dialed. It must return when ctx is
	// done, which may be early, because the first answer is dialed. Default: the method of
	// net.DefaultResolver.
	LookupNetIP func(ctx context.Context, network, host string) ([]netip.Addr, error)

	// LocalAddr is the address to dial from; then only addresses of its family are tried. An IPv4
	// address may be written as an IPv6 one (::ffff:192.0.2.1). Default: the kernel's choice.
	LocalAddr netip.Addr

	// Control is called with each new socket before it connects, as in [net.Dialer], perhaps
	// concurrently. Default: none.
	Control func(network, address string, c syscall.RawConn) error
}

// keepAliveDefault is what Go's net package uses for idle and interval.
const keepAliveDefault = 15 * time.Second

// The most that Linux takes (MAX_TCP_KEEPIDLE, MAX_TCP_KEEPINTVL, MAX_TCP_KEEPCNT in
// net/tcp.h). Package net would ignore its refusal.
const (
	maxKeepAlive      = 32767 * time.Second
	maxKeepAliveCount = 127
)

func (o *TCPOptions) validate() error {
	if o.UserTimeout <= 0 {
		return nil
	}
	if d := o.withDefaults(); d.KeepAlive.Enable && o.UserTimeout < probing(d.KeepAlive) {
		return fmt.Errorf("UserTimeout: %v is less than KeepAlive.Idle + 2 KeepAlive.Interval (%v)", o.UserTimeout, probing(d.KeepAlive))
	}
	return nil
}

// forMessages returns a copy of o with the defaults of [WebSocket] and [Framed].
func (o *TCPOptions) forMessages() *TCPOptions {
	d := o.withDefaults()
	if d.UserTimeout == 0 {
		d.UserTimeout = 3 * keepAliveDefault
		if d.KeepAlive.Enable {
			d.UserTimeout = probing(d.KeepAlive)
		}
	}
	return d
}

// withDefaults returns a copy of o with the defaults of [Dialer].
func (o *TCPOptions) withDefaults() *TCPOptions {
	d := *o
	if d.KeepAlive == (net.KeepAliveConfig{}) {
		d.KeepAlive.Enable = true
		if d.UserTimeout > 0 {
			// The kernel counts in whole seconds.
			third := max(d.UserTimeout/3, time.Second).Truncate(time.Second)
			d.KeepAlive.Idle, d.KeepAlive.Interval = third, third
		}
	}
	d.KeepAlive.Idle = min(cmp.Or(d.KeepAlive.Idle, keepAliveDefault), maxKeepAlive)
	d.KeepAlive.Interval = min(cmp.Or(d.KeepAlive.Interval, keepAliveDefault), maxKeepAlive)
	d.KeepAlive.Count = min(d.KeepAlive.Count, maxKeepAliveCount)
	if d.LookupNetIP == nil {
		d.LookupNetIP = net.DefaultResolver.LookupNetIP
	}
	d.LocalAddr = d.LocalAddr.Unmap()
	return &d
}

// probing returns how long keepalive needs to lose two probes. A negative time leaves
// the kernel's own, for which no user timeout should wait.
func probing(k net.KeepAliveConfig) time.Duration {
	idle, interval := cmp.Or(max(k.Idle, 0), keepAliveDefault), cmp.Or(max(k.Interval, 0), keepAliveDefault)
	return idle + 2*interval
}

// dial looks up the host of address and connects to the first of its addresses that answers. It tries the
// addresses that avoid reports only if no other answers. Each call shuffles the addresses, so that clients
// spread over them. The limit is that on all of it, of which a lookup may take a part; 0 is none. The options
// have their defaults.
func (o *TCPOptions) dial(
	ctx context.Context, r *rand.Rand, avoid func(address string) bool, limit time.Duration, network, address string,
) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return o.connect(ctx, network, address)
	}
	l := o.lookUp(ctx, r, lookupLimit(limit), network, host)
	defer l.close()
	addrs, err := l.first()
	if err != nil {
		return nil, err
	}
	var more <-chan found
	if l.left > 0 {
		more = l.answers
	}
	with := func(a netip.Addr) string { return net.JoinHostPort(a.String(), port) }
	c := candidates{addrs, more, l.patience.C, func(a netip.Addr) bool { return avoid(with(a)) }, r}
	return c.race(ctx, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		return o.connect(ctx, network, with(a))
	})
}

// family returns the resolver's network for a socket's network.
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
	if o.UserTimeout > 0 {
		if err := setUserTimeout(c, o.UserTimeout); err != nil {
			return err
		}
	}
	if o.Control == nil {
		return nil
	}
	// Package net would leave the socket open if Control did not return.
	_, err := call(func() (struct{}, error) { return struct{}{}, o.Control(network, address, c) })
	return err
}
