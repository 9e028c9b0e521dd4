package conn

import (
	"encoding/binary"
	"net"
	"syscall"
)

// firstEnded is TIME_WAIT, the first state of a TCP socket that has received a FIN or a reset. A
// socket in any later state has received one too, unless it listens.
const firstEnded = 6

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
		var head [4]byte // the state is the first byte of struct tcp_info
		binary.NativeEndian.PutUint32(head[:], uint32(info))
		hungUp = err == nil && head[0] >= firstEnded
	})
	return hungUp
}
