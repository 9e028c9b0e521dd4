//go:build !linux

package dialer

import (
	"syscall"
	"time"
)

// setUserTimeout does nothing: only Linux has TCP_USER_TIMEOUT.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
