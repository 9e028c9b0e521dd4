package netwatch

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quick are options for real time. The Interval is longer than a test may take, so that only
// an announcement makes the Watcher look.
var quick = &Options{Interval: time.Hour}

// wired is a namespace with an interface eth0, whose cable ends at veth0, and a Watcher.
type wired struct {
	*links
	w       *Watcher
	looks   atomic.Int64
	changes <-chan Change
}

// inWired runs script in a namespace of its own. Eth0 has no address yet.
func inWired(t *testing.T, script func(*wired)) {
	inNamespace(t, func() {
		l := newLinks(t)
		l.addPair("eth0", "veth0")
		l.up("eth0", "veth0")
		s := &wired{links: l}
		counted := func(ignore func(string) bool) (Network, error) {
			s.looks.Add(1)
			return look(ignore)
		}
		w, err := start(context.Background(), quick, machine{look: counted, listen: listen, wall: time.Now})
		require.NoError(t, err)
		require.NoError(t, w.Status().Polling)
		require.Equal(t, Network{}, w.Status().Network)
		s.w, s.changes = w, w.Changes(context.Background())
		script(s)
		w.Close()
		<-w.Done()
	})
}

// settled waits until the announcements of what was done before are over, and returns the
// network after them.
func (s *wired) settled() Network {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		before := s.looks.Load()
		time.Sleep(3 * settle)
		if s.looks.Load() == before {
			status := s.w.Status()
			require.NoError(s.t, status.Err)
			return status.Network
		}
		require.True(s.t, time.Now().Before(deadline), "the announcements do not end")
	}
}

// await waits for the next change.
func (s *wired) await() Change {
	s.t.Helper()
	select {
	case c := <-s.changes:
		return c
	case <-time.After(20 * time.Second):
		require.FailNow(s.t, "no change was reported", "the network is %+v", s.w.Status())
		return Change{}
	}
}

// until merges changes until the network is as wanted.
func (s *wired) until(want func(Network) bool) Change {
	s.t.Helper()
	c := s.await()
	for !want(c.New) {
		next := s.await()
		c = Change{Old: c.Old, New: next.New, Slept: c.Slept + next.Slept}
	}
	return c
}

func needIPv6(t *testing.T) {
	if !hasIPv6() {
		t.Skip("this system has no IPv6")
	}
}

func on(iface, addr string) Address {
	return Address{Interface: iface, Addr: netip.MustParseAddr(addr)}
}

func TestAnAddressAndARouteOfLinuxAreChanges(t *testing.T) {
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.route("10.9.0.254")
		eth0 := on("eth0", "10.9.0.1")
		route := Route{Interface: "eth0", Gateway: netip.MustParseAddr("10.9.0.254"), Source: eth0.Addr}
		c := s.until(func(n Network) bool { return n.IPv4 != Route{} })
		require.Equal(t, Change{New: Network{Addresses: []Address{eth0}, IPv4: route}}, c)

		s.route("10.9.0.253")
		c = s.await()
		require.Equal(t, "IPv4 route: eth0 via 10.9.0.253 from 10.9.0.1", c.String())

		s.add("eth0", "10.9.0.2/24")
		require.Equal(t, "10.9.0.2 (eth0) is new", s.await().String())
		s.drop("eth0", "10.9.0.2/24")
		require.Equal(t, "10.9.0.2 (eth0) is gone", s.await().String())
	})
}

// A cable that is pulled leaves address and route where they are.
func TestALinkOfLinuxThatGoesDownTakesItsAddresses(t *testing.T) {
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.route("10.9.0.254")
		online := s.until(func(n Network) bool { return n.IPv4 != Route{} }).New
		s.down("veth0") // the other end
		c := s.until(Network.Offline)
		require.Equal(t, Change{Old: online}, c)
		s.up("veth0")
		require.Equal(t, Change{New: online}, s.until(online.equal))
	})
}

// Of this only the link is announced.
func TestALinkOfLinuxThatIsNotAuthenticatedIsDown(t *testing.T) {
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.until(func(n Network) bool { return !n.Offline() })
		s.authenticated("eth0", false)
		require.True(t, s.await().New.Offline())
		s.authenticated("eth0", true)
		require.False(t, s.await().New.Offline())
	})
}

func TestAGatewayMayBeOfTheOtherFamily(t *testing.T) {
	needIPv6(t)
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.routeByIPv6("eth0", "fe80::1")
		c := s.until(func(n Network) bool { return n.IPv4 != Route{} })
		require.Equal(t, "eth0 via fe80::1 from 10.9.0.1", c.New.IPv4.String())
	})
}

func TestNoiseOfContainersIsNoChange(t *testing.T) {
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		before := s.until(func(n Network) bool { return !n.Offline() }).New
		s.settled()
		looks := s.looks.Load()
		for i := range 20 {
			one, two := fmt.Sprintf("veth1%d", i), fmt.Sprintf("cali%d", i)
			s.addPair(one, two)
			s.up(one, two)
			s.add(one, fmt.Sprintf("172.17.%d.1/24", i))
			s.remove(one)
		}
		s.add("lo", "127.0.0.2/8")
		s.add("eth0", "169.254.7.7/16")
		require.Equal(t, before, s.settled())
		require.Greater(t, s.looks.Load(), looks)
		require.Empty(t, s.changes)
	})
}

func TestAnIPv6AddressCountsOnceItIsUsable(t *testing.T) {
	needIPv6(t)
	inWired(t, func(s *wired) {
		s.settled()
		s.add("eth0", "2001:db8::1/64") // the kernel now asks for about a second whether somebody has it
		n, err := look(Virtual)
		require.NoError(t, err)
		require.Equal(t, Network{}, n)
		require.Equal(t, "2001:db8::1 (eth0) is new", s.await().String())
		s.route("2001:db8::ffff")
		want := Route{Interface: "eth0", Gateway: netip.MustParseAddr("2001:db8::ffff"), Source: netip.MustParseAddr("2001:db8::1")}
		require.Equal(t, want, s.await().New.IPv6)
	})
}

// narrow returns a subscription with room for hardly an announcement.
func narrow(t *testing.T) *os.File {
	socket, err := netlink(groups)
	require.NoError(t, err)
	raw, err := socket.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1))
	}))
	return socket
}

// The kernel drops announcements when the socket is full of them.
func TestTooManyAnnouncementsAreOneAnnouncement(t *testing.T) {
	inNamespace(t, func() {
		l := newLinks(t)
		one, two := narrow(t), narrow(t)
		defer one.Close()
		for range 100 { // which nobody reads
			l.add("lo", "127.0.0.2/8")
			l.drop("lo", "127.0.0.2/8")
		}
		_, err := one.Read(make([]byte, 64))
		require.ErrorIs(t, err, syscall.ENOBUFS)
		events, done := make(chan error, 1), make(chan struct{})
		go func() { defer close(done); announce(two, events) }()
		defer func() { two.Close(); <-done }()
		require.NoError(t, <-events)
		l.add("lo", "127.0.0.3/8")
		require.NoError(t, <-events)
	})
}

func TestStopEndsListen(t *testing.T) {
	inNamespace(t, func() {
		events := make(chan error, 1)
		stop, err := listen(events)
		require.NoError(t, err)
		stop()
		select {
		case err := <-events:
			require.ErrorIs(t, err, os.ErrClosed)
		default:
			require.Fail(t, "it still reads")
		}
	})
}

func TestTheSourceOfPacketsStandsForARouteThatCannotBeAsked(t *testing.T) {
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.route("10.9.0.254")
		all := []Address{on("eth1", "10.9.0.2"), on("eth0", "10.9.0.1")}
		r, err := sourceRoute(far4, all)
		require.NoError(t, err)
		require.Equal(t, Route{Interface: "eth0", Source: all[1].Addr}, r)
		r, err = sourceRoute(far6, all)
		require.NoError(t, err)
		require.Equal(t, Route{}, r)
	})
}

func TestALackOfSocketsIsNoLackOfNetwork(t *testing.T) {
	inNamespace(t, func() {
		var limit syscall.Rlimit
		require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}))
		_, whole := look(Virtual)
		_, source := sourceRoute(far4, nil)
		_, asked := route(far4, nil, nil)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		for _, err := range []error{whole, source, asked} {
			require.ErrorIs(t, err, syscall.EMFILE)
		}
	})
}

// This is how a VPN takes the route to the Internet.
func TestARuleThatTakesTheRouteIsAChange(t *testing.T) {
	needIPv6(t)
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.add("eth0", "2001:db8::1/64")
		s.route("10.9.0.254")
		s.route("2001:db8::ffff")
		s.until(func(n Network) bool { return n.IPv4 != Route{} && len(n.Addresses) == 2 })
		s.settled()
		s.forbid(syscall.AF_INET)
		require.Equal(t, "IPv4 route: none", s.await().String())
		s.forbid(syscall.AF_INET6)
		require.Equal(t, "IPv6 route: none", s.await().String())
	})
}

// Package net lists those too that are not usable yet.
func TestPackageNetListsTheSameAddressesInTheEnd(t *testing.T) {
	needIPv6(t)
	inWired(t, func(s *wired) {
		s.add("eth0", "10.9.0.1/24")
		s.add("veth0", "10.9.0.2/24")
		s.add("eth0", "2001:db8::1/64")
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			names, ours, err := interfaces()
			require.NoError(t, err)
			theirs, err := listed(names)
			require.NoError(t, err)
			if len(ours) == 3 {
				require.ElementsMatch(t, theirs, ours)
				return
			}
			require.Subset(t, theirs, ours)
			require.True(t, time.Now().Before(deadline), "%v", ours)
		}
	})
}
