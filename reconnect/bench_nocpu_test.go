//go:build !unix

package reconnect_test

import "time"

// cpu is the wall clock where the system is not asked for processor time.
func cpu() time.Duration { return time.Duration(time.Now().UnixNano()) }
