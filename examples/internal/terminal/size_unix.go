//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package terminal

import (
	"os"
	"syscall"
	"unsafe"
)

// Is reports whether stream is a file that is a terminal. /dev/null is none.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := size(f)
	return err == nil
}

// columns returns the width of a terminal, 80 if it does not say.
func columns(f *os.File) int {
	n, err := size(f)
	if err != nil || n == 0 {
		return 80
	}
	return n
}

func size(f *os.File) (columns int, err error) {
	raw, err := f.SyscallConn() // and not Fd, which would make the file blocking
	if err != nil {
		return 0, err
	}
	var s struct{ rows, columns, x, y uint16 }
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&s)))
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return int(s.columns), err
}
