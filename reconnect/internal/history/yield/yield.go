// Package yield lets another goroutine run, at random. Command widen puts calls of it into the library.
package yield

import (
	"math/rand/v2"
	"runtime"
)

// Here lets other goroutines run, once in four calls.
func Here() {
	if rand.Uint32()%4 == 0 {
		runtime.Gosched()
	}
}
