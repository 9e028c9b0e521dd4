//go:build !linux

package lab

import (
	"errors"
	"net"
)

// setBacklog cannot be.
func setBacklog(*net.TCPListener, int) error {
	return errors.New("the length of a backlog can be chosen on Linux only")
}

// backlog is unknown.
func backlog(*net.TCPListener) (waiting, limit int) { return 0, 0 }
