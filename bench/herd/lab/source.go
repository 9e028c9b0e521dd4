package lab

import (
	"net/netip"
	"runtime"
)

// sources is from how many loopback addresses clients dial.
const sources = 64

// anywhere leaves the choice to the kernel.
var anywhere netip.Addr

// source returns the address from which the client i dials, or none where loopback
// is one address.
func source(i int) netip.Addr {
	if runtime.GOOS != "linux" {
		return anywhere
	}
	return netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i%sources)})
}
