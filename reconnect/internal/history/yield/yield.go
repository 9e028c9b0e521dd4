// Package yield lets other goroutines run, at random. Command widen puts calls of it into the library.
package yield

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

var used atomic.Bool

// Used reports whether Here was called: the library is widened.
func Used() bool { return used.Load() }

// Here lets other goroutines run, once in four calls. Once in 32 it lets them run for long, so that another goroutine can
// do something whole, such as a call of a method, between two steps of this one.
func Here() {
	if !used.Load() {
		used.Store(true)
	}
	n := rand.Uint32()
	switch {
	case n%32 == 0:
		for range 40 {
			runtime.Gosched()
		}
	case n%4 == 0:
		runtime.Gosched()
	}
}
