//go:build unix

package lab

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// raiseFiles raises the limit on open files to the highest that this process may
// have, if the system lets it, and returns what the limit is then.
func raiseFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read limit on open files: %w", err)
	}
	as := l.Cur
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return uint64(as), nil // it stays as it is
	}
	return uint64(l.Max), nil
}

// continuations returns a channel that gets a signal each time this process goes on after a stop, until end
// is called.
func continuations() (signals <-chan os.Signal, end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}
