//go:build !linux

package lab

import "net"

// backlog is unknown.
func backlog(*net.TCPListener) (waiting, limit int) { return 0, 0 }
