package conn

import (
	"encoding/binary"
	"net"
	"syscall"
)

// States of a TCP socket that has received a FIN or a reset, as TCP_INFO has them.
const (
	tcpTimeWait  = 6
	tcpClose     = 7
	tcpCloseWait = 8
	tcpLastAck   = 9
	tcpClosing   = 11
)

// socketHungUp asks the kernel for the state of nc, if that is a TCP socket.
func socketHungUp(nc net.Conn) (hungUp bool) {
	s, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if err != nil {
			return
		}
		var head [4]byte // the state is the first byte of struct tcp_info
		binary.NativeEndian.PutUint32(head[:], uint32(info))
		switch head[0] {
		case tcpTimeWait, tcpClose, tcpCloseWait, tcpLastAck, tcpClosing:
			hungUp = true
		}
	})
	return hungUp
}
