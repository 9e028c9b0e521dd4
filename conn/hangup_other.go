//go:build !linux

package conn

import "net"

// socketHungUp reports false: only Linux tells it cheaply.
func socketHungUp(net.Conn) bool { return false }
