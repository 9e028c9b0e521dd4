package watch

import (
	"net"
	"slices"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// errAddressGone is the cause of the end of a session whose local address this machine has
// lost.
var errAddressGone error = &link.Ended{Text: "the local address of the connection is gone", Why: backoff.ReasonLocal}

// addressGone reports whether t, which may be nil, is bound to an IP address that this machine
// does not have any more.
func addressGone(t conn.Transport) bool {
	if t == nil {
		return false
	}
	local, ok := t.LocalAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false // then nobody knows
	}
	return !slices.ContainsFunc(addresses, func(at net.Addr) bool {
		n, ok := at.(*net.IPNet)
		return ok && (n.IP.Equal(local.IP) || n.IP.IsLoopback() && local.IP.IsLoopback())
	})
}
