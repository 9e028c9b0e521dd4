package netwatch

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// machine is how a Watcher sees the network. Tests use other machines.
type machine struct {
	// look returns the network as it is now, without the interfaces to be ignored.
	look func(ignore func(string) bool) (Network, error)

	// listen returns what announces changes. With an error it returns an announcer that
	// announces nothing.
	listen func() (*announcer, error)

	wall func() time.Time // the wall clock
}

// announcer is how the system announces that something may have changed.
type announcer struct {
	events chan struct{} // holds one, which stands for all since the last look; nil: none will come; closed: it broke
	err    error         // why it broke; read it only after events was closed
	stop   func()        // returns when nothing is left; nil: there is nothing to stop
}

func (a *announcer) close() {
	if a.stop != nil {
		a.stop()
	}
}

// Virtual reports whether the named interface belongs to containers or virtual machines. Its name then begins
// with one of:
//
//   - Linux: br-, cali, cilium, cni, docker, dummy, flannel, ifb, kube-, lxc, lxdbr, nerdctl, nodelocaldns,
//     podman, veth, virbr, vnet, weave
//   - macOS: anpi, awdl, bridge10, llw, vboxnet, vmenet, vmnet
//   - Windows: "vEthernet (", "VirtualBox ", "VMware "
func Virtual(name string) bool {
	return slices.ContainsFunc(virtual, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

var virtual = []string{
	"br-", "cali", "cilium", "cni", "docker", "dummy", "flannel", "ifb", "kube-", "lxc", "lxdbr", "nerdctl",
	"nodelocaldns", "podman", "veth", "virbr", "vnet", "weave",
	"anpi", "awdl", "bridge10", "llw", "vboxnet", "vmenet", "vmnet",
	"vEthernet (", "VirtualBox ", "VMware ",
}

// network returns the Network of these addresses and routes, without what does not count.
func network(addresses []Address, ipv4, ipv6 Route, ignore func(string) bool) Network {
	n := Network{IPv4: ipv4, IPv6: ipv6}
	for _, a := range addresses {
		routed := a.Interface == ipv4.Interface || a.Interface == ipv6.Interface
		if counts(a.Addr) && (routed || !ignore(a.Interface)) {
			n.Addresses = append(n.Addresses, a)
		}
	}
	slices.SortFunc(n.Addresses, Address.compare)
	n.Addresses = slices.Compact(n.Addresses)
	return n
}

// counts reports whether others can be reached from an address. Addresses of the link alone
// come and go without a meaning.
func counts(a netip.Addr) bool {
	return a.IsValid() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified()
}
