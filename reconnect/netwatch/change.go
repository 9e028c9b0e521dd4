package netwatch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Change is a change of the network, as reported by a [Watcher].
type Change struct {
	// Old and New are equal if the machine only slept, or if the network changed and changed back before the
	// reader took the Change.
	Old, New Network

	// Slept is how long the machine, or this process, was suspended. Zero means at most 5 s. It comes from the
	// wall clock, so a clock that is set forward looks like sleep.
	Slept time.Duration
}

// String returns the whole change, for a log.
func (c Change) String() string {
	var parts []string
	if c.Slept > 0 {
		parts = append(parts, fmt.Sprintf("slept for %v", c.Slept.Round(time.Second)))
	}
	for _, a := range c.Old.Addresses {
		if !slices.Contains(c.New.Addresses, a) {
			parts = append(parts, fmt.Sprintf("%v is gone", a))
		}
	}
	for _, a := range c.New.Addresses {
		if !slices.Contains(c.Old.Addresses, a) {
			parts = append(parts, fmt.Sprintf("%v is new", a))
		}
	}
	if c.Old.IPv4 != c.New.IPv4 {
		parts = append(parts, fmt.Sprintf("IPv4 route: %v", c.New.IPv4))
	}
	if c.Old.IPv6 != c.New.IPv6 {
		parts = append(parts, fmt.Sprintf("IPv6 route: %v", c.New.IPv6))
	}
	if parts == nil {
		return "changed, and changed back"
	}
	return strings.Join(parts, ", ")
}

// Network is a snapshot of the machine's network. Do not change its Addresses, which are shared.
type Network struct {
	Addresses  []Address // of all interfaces that count, sorted by interface
	IPv4, IPv6 Route     // routes to the Internet; zero if there is none
}

// Offline reports whether no interface that counts has an address.
func (n Network) Offline() bool { return len(n.Addresses) == 0 }

func (n Network) equal(other Network) bool {
	return n.IPv4 == other.IPv4 && n.IPv6 == other.IPv6 && slices.Equal(n.Addresses, other.Addresses)
}

// Address is an IP address of an interface.
type Address struct {
	Interface string     // interface name; empty if the system does not list the interfaces
	Addr      netip.Addr // without a zone
}

// String returns the address and its interface, such as "192.0.2.7 (eth0)".
func (a Address) String() string {
	if a.Interface == "" {
		return a.Addr.String()
	}
	return fmt.Sprintf("%v (%s)", a.Addr, a.Interface)
}

// Route is the route to the Internet.
type Route struct {
	Interface string     // outgoing interface; empty if unknown
	Gateway   netip.Addr // next hop; invalid if there is none, or on other systems than Linux
	Source    netip.Addr // source address of the packets
}

// String returns the route, such as "eth0 via 192.0.2.1 from 192.0.2.7".
func (r Route) String() string {
	if r == (Route{}) {
		return "none"
	}
	var parts []string
	if r.Interface != "" {
		parts = append(parts, r.Interface)
	}
	if r.Gateway.IsValid() {
		parts = append(parts, "via "+r.Gateway.String())
	}
	if r.Source.IsValid() {
		parts = append(parts, "from "+r.Source.String())
	}
	return strings.Join(parts, " ")
}
