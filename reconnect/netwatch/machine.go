package netwatch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// machine is how a Watcher sees the network. Tests use other machines.
type machine struct {
	look func(ignore func(string) bool) (Network, error)
	wall func() time.Time // the wall clock

	// listen sends nil to events, which is buffered (1), when something may have changed, and an error after
	// the last announcement. Stop waits until nothing of it is left; it is set even if err is non-nil.
	listen func(events chan error) (stop func(), err error)
}

// Virtual reports whether the named interface belongs to containers or virtual machines. Its name then begins
// with one of:
//
//   - Linux: br-, cali, cilium, cni, docker, dummy, flannel, ifb, kube-, lxc, lxdbr, nerdctl, nodelocaldns,
//     podman, veth, virbr, vnet, weave
//   - macOS: anpi, awdl, bridge10, llw, vboxnet, vmenet, vmnet
//   - Windows: "vEthernet (", "VirtualBox ", "VMware "
func Virtual(name string) bool {
	prefixes := []string{
		"br-", "cali", "cilium", "cni", "docker", "dummy", "flannel", "ifb", "kube-", "lxc", "lxdbr", "nerdctl",
		"nodelocaldns", "podman", "veth", "virbr", "vnet", "weave",
		"anpi", "awdl", "bridge10", "llw", "vboxnet", "vmenet", "vmnet",
		"vEthernet (", "VirtualBox ", "VMware ",
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// far4 and far6 are the addresses of a.root-servers.net, which rarely change. No packet is sent there.
var far4, far6 = netip.MustParseAddr("198.41.0.4"), netip.MustParseAddr("2001:503:ba3e::2:30")

func look(ignore func(string) bool) (Network, error) {
	names, all, err := interfaces()
	hidden := errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) ||
		errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EPROTONOSUPPORT)
	if err != nil && !hidden {
		return Network{}, err
	}
	ipv4, err4 := route(far4, names, all)
	ipv6, err6 := route(far6, names, all)
	if err := cmp.Or(err4, err6); err != nil {
		return Network{}, err
	}
	if hidden { // as on Android
		all = []Address{{Addr: ipv4.Source}, {Addr: ipv6.Source}}
	}
	return network(all, ipv4, ipv6, ignore), nil
}

// network returns a Network without the addresses that do not count.
func network(addresses []Address, ipv4, ipv6 Route, ignore func(string) bool) Network {
	n := Network{IPv4: ipv4, IPv6: ipv6}
	for _, a := range addresses {
		routed := a.Interface == ipv4.Interface || a.Interface == ipv6.Interface
		if a.Addr.IsGlobalUnicast() && (routed || !ignore(a.Interface)) {
			n.Addresses = append(n.Addresses, a)
		}
	}
	slices.SortFunc(n.Addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Interface, b.Interface), a.Addr.Compare(b.Addr))
	})
	n.Addresses = slices.Compact(n.Addresses)
	return n
}

// interfaces returns the names, by index, and the addresses of the interfaces that can carry packets to
// others.
func interfaces() (names map[int]string, all []Address, err error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, nil, err
	}
	names = make(map[int]string, len(list))
	for _, i := range list {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0 && i.Flags&net.FlagLoopback == 0 {
			names[i.Index] = i.Name
		}
	}
	if all, err = addresses(names); err != nil {
		return nil, nil, err
	}
	return names, all, nil
}

// listed returns the addresses of the named interfaces as package net lists them.
func listed(names map[int]string) (all []Address, err error) {
	for index, name := range names {
		addrs, err := (&net.Interface{Index: index, Name: name}).Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", name, err)
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				addr, _ := netip.AddrFromSlice(n.IP)
				all = append(all, Address{Interface: name, Addr: addr.Unmap()})
			}
		}
	}
	return all, nil
}

// sourceRoute returns what the source address of packets tells about their route, or zero if there is none.
// It connects a UDP socket, which sends nothing.
func sourceRoute(to netip.Addr, all []Address) (Route, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 53)))
	if err != nil {
		lack := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} // no word about the route
		if slices.ContainsFunc(lack, func(e error) bool { return errors.Is(err, e) }) {
			return Route{}, err
		}
		return Route{}, nil
	}
	defer c.Close()
	r := Route{Source: c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")}
	for _, a := range all {
		if a.Addr == r.Source {
			r.Interface = a.Interface
		}
	}
	return r, nil
}
