package history

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

// sentAll waits until the kernel has sent all that was written to nc, and reports whether it did within a
// second. A reset discards what was not sent, and on loopback what was sent is in the buffer of the other socket.
func sentAll(nc *net.TCPConn) bool {
	const unsent = 0x894B // SIOCOUTQNSD
	raw, err := nc.SyscallConn()
	if err != nil {
		return false
	}
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(100 * time.Microsecond) {
		n, failed := int32(0), syscall.Errno(0)
		err := raw.Control(func(fd uintptr) {
			_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, unsent, uintptr(unsafe.Pointer(&n)))
		})
		if err != nil || failed != 0 {
			return false
		}
		if n == 0 {
			return true
		}
	}
	return false
}
