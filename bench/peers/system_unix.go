//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"
)

// usage returns the CPU time of this process, in user mode and in the kernel.
func usage() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
