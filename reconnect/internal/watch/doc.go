// Package watch watches one link: whether its peer is alive (Liveness), whether it brings messages
// (Stall), and whether something is written to it now and then (KeepAlive). Each is a timer, and the
// goroutine of its callback while that runs.
package watch
