package dialer

import (
	"math"
	"os"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall lacks.
const tcpUserTimeout = 0x12

// setUserTimeout sets TCP_USER_TIMEOUT, which the kernel counts in
// milliseconds.
func setUserTimeout(c syscall.RawConn, d time.Duration) error {
	var err error
	if controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(min(max(d.Milliseconds(), 1), math.MaxInt32)))
	}); controlErr != nil {
		return controlErr
	}
	return os.NewSyscallError("setsockopt TCP_USER_TIMEOUT", err)
}
