package main

import (
	"bufio"
	"fmt"
	"os"
)

// freeMemory returns which part of the machine's memory is available.
func freeMemory() (float64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var total, available float64
	for s := bufio.NewScanner(f); s.Scan(); {
		_, _ = fmt.Sscanf(s.Text(), "MemTotal: %f", &total) // another line otherwise
		_, _ = fmt.Sscanf(s.Text(), "MemAvailable: %f", &available)
	}
	if total == 0 || available == 0 {
		return 0, fmt.Errorf("read /proc/meminfo: no MemTotal or MemAvailable")
	}
	return available / total, nil
}

// residentMemory returns the resident memory of this process in bytes. VmRSS in /proc/self/status is the same
// but inaccurate (proc_pid_status(5)).
func residentMemory() (int64, error) {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int64
		if n, _ := fmt.Sscanf(s.Text(), "Rss: %d kB", &kb); n == 1 {
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("read /proc/self/smaps_rollup: no Rss")
}
