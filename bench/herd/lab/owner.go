package lab

import (
	"fmt"
	"net"
	"strings"
)

// MayVisit returns an error if a server is neither on this machine nor confirmed to be the user's own. The
// address has a port or none. What is a noun for that which may harm the server.
func MayVisit(address, what string, mine bool) error {
	if mine || isLoopback(address) {
		return nil
	}
	return fmt.Errorf("%s is not this machine, and a %s can harm a server: add -i-own-this-server if it is yours", address, what)
}

// isLoopback reports whether an address, with or without a port, is one of this machine alone.
func isLoopback(address string) bool {
	host := strings.Trim(address, "[]")
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
