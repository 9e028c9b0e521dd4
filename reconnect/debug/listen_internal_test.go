package debug

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// All addresses of a machine are no name that a browser could ask for, and that the page would answer.
func TestTheURLOfAListenerIsOneOfThisMachine(t *testing.T) {
	for want, ip := range map[string]net.IP{
		"http://localhost:7/": net.IPv4zero, "http://127.0.0.1:7/": net.IPv4(127, 0, 0, 1), "http://[::1]:7/": net.IPv6loopback,
	} {
		require.Equal(t, want, urlOf(&net.TCPAddr{IP: ip, Port: 7}))
	}
	require.Equal(t, "http://localhost:8/", urlOf(&net.TCPAddr{IP: net.IPv6unspecified, Port: 8}))
}
