package netwatch

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInterfacesOfContainersAreVirtual(t *testing.T) {
	for _, name := range []string{
		"veth1a2b3c", "docker0", "br-5f6e7d", "virbr0", "vnet3", "cni0", "cali12345", "flannel.1", "lxdbr0",
		"kube-ipvs0", "awdl0", "vEthernet (WSL)", "VirtualBox Host-Only Network",
	} {
		require.True(t, Virtual(name), name)
	}
	// A bridge of this name is often the machine's own; the rest are hardware and VPNs.
	for _, name := range []string{"br0", "bridge0", "eth0", "enp3s0", "wlan0", "en0", "tun0", "wg0", "utun4", "tailscale0", "Ethernet", "Wi-Fi"} {
		require.False(t, Virtual(name), name)
	}
}

func TestAddressesOfTheLinkDoNotCount(t *testing.T) {
	var all []Address
	for _, a := range []string{"192.0.2.9", "127.0.0.1", "::1", "fe80::1", "169.254.3.4", "0.0.0.0", "2001:db8::1", "192.0.2.9"} {
		all = append(all, Address{Interface: "eth0", Addr: netip.MustParseAddr(a)})
	}
	all = append(all, Address{Interface: "eth0"})
	n := network(all, Route{}, Route{}, Virtual)
	require.Equal(t, []Address{all[0], all[6]}, n.Addresses)
	require.False(t, n.Offline())
	require.True(t, network(all[1:6], Route{}, Route{}, Virtual).Offline())
}

// In a container the only interface may be called vethX, and on Windows the machine's own
// network may lie behind a virtual switch.
func TestAnInterfaceWithADefaultRouteCountsByAnyName(t *testing.T) {
	four := Address{Interface: "veth0", Addr: netip.MustParseAddr("192.0.2.9")}
	six := Address{Interface: "vEthernet (Wi-Fi)", Addr: netip.MustParseAddr("2001:db8::9")}
	other := Address{Interface: "veth1", Addr: netip.MustParseAddr("192.0.2.10")}
	n := network([]Address{other, four, six}, Route{Interface: "veth0"}, Route{Interface: six.Interface}, Virtual)
	require.Equal(t, []Address{six, four}, n.Addresses)
	n = network([]Address{other}, Route{}, Route{}, func(string) bool { return false })
	require.Len(t, n.Addresses, 1, "Ignore decides instead")
}
