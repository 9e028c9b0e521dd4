//go:build unix

package reconnect_test

import (
	"syscall"
	"time"
)

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
