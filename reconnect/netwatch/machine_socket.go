//go:build !js && !wasip1

package netwatch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// far4 and far6 are the addresses of a.root-servers.net, which have stood for decades. The route to
// them is looked up; no packet is sent to them.
var far4, far6 = netip.MustParseAddr("198.41.0.4"), netip.MustParseAddr("2001:503:ba3e::2:30")

// thisMachine returns the machine that the program runs on. If the system refuses to list the
// interfaces, as Android does, the source addresses of the routes to the Internet have to do.
func thisMachine() (machine, error) {
	m := machine{look: look, listen: listen, wall: time.Now}
	if _, err := interfaces(); refused(err) {
		m.look = lookAtSources
	}
	return m, nil
}

// refused reports whether err means that the system does not allow something to this process.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) ||
		errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EPROTONOSUPPORT)
}

// look looks at interfaces and routes.
func look(ignore func(string) bool) (Network, error) {
	names, err := interfaces()
	if err != nil {
		return Network{}, err
	}
	all, err := addresses(names)
	if err != nil {
		return Network{}, err
	}
	ipv4, err4 := route(far4, names, all)
	ipv6, err6 := route(far6, names, all)
	if err := cmp.Or(err4, err6); err != nil {
		return Network{}, err
	}
	return network(all, ipv4, ipv6, ignore), nil
}

// lookAtSources looks only at the source addresses of packets to the Internet.
func lookAtSources(func(string) bool) (Network, error) {
	ipv4, err4 := source(far4)
	ipv6, err6 := source(far6)
	if err := cmp.Or(err4, err6); err != nil {
		return Network{}, err
	}
	all := []Address{{Addr: ipv4}, {Addr: ipv6}}
	return network(all, Route{Source: ipv4}, Route{Source: ipv6}, Virtual), nil
}

// interfaces returns the names of the interfaces that can carry packets to others, by their
// index.
func interfaces() (map[int]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(all))
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0 && i.Flags&net.FlagLoopback == 0 {
			names[i.Index] = i.Name
		}
	}
	return names, nil
}

// interfaceAddresses returns the addresses of the named interfaces as package net lists them.
func interfaceAddresses(names map[int]string) ([]Address, error) {
	var all []Address
	for index, name := range names {
		i := net.Interface{Index: index, Name: name}
		addrs, err := i.Addrs()
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

// source returns the source address of packets to an address. It is not valid if there is no
// way. It connects a UDP socket, which sends nothing.
func source(to netip.Addr) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 53)))
	if err != nil {
		lack := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} // they say nothing about the way
		if slices.ContainsFunc(lack, func(e error) bool { return errors.Is(err, e) }) {
			return netip.Addr{}, err
		}
		return netip.Addr{}, nil
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone(""), nil
}

// sourceRoute returns what the source address of packets tells of their route.
func sourceRoute(to netip.Addr, all []Address) (Route, error) {
	from, err := source(to)
	r := Route{Source: from}
	for _, a := range all {
		if a.Addr == from {
			r.Interface = a.Interface
		}
	}
	return r, err
}
