package lab

import (
	"net"

	"golang.org/x/sys/unix"
)

// setBacklog makes a listener's backlog so long, if the kernel allows it (net.core.somaxconn).
func setBacklog(l *net.TCPListener, n int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var listened error
	if err := raw.Control(func(fd uintptr) { listened = unix.Listen(int(fd), n) }); err != nil {
		return err
	}
	return listened
}

// backlog returns how many connections wait to be accepted, and how many may: for a
// listener the kernel says so in TCP_INFO (tcpi_unacked and tcpi_sacked).
func backlog(l *net.TCPListener) (waiting, limit int) {
	raw, err := l.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			waiting, limit = int(info.Unacked), int(info.Sacked)
		}
	})
	return waiting, limit
}
