// Package walktrace notes which functions are called. Command house adds it to a copy of the module, in which
// each function calls Enter.
package walktrace

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
)

// A Call is the call of a function, or its return.
type Call struct {
	Goroutine int
	Name      string // the file, a space, and the function; empty at the return
}

var (
	mu    sync.Mutex
	on    bool
	calls []Call
)

// Start forgets what was noted, and begins to note.
func Start() {
	mu.Lock()
	defer mu.Unlock()
	on, calls = true, nil
}

// Stop returns what was noted since Start.
func Stop() []Call {
	mu.Lock()
	defer mu.Unlock()
	on = false
	return calls
}

// Enter notes a call, and returns the function that notes its return.
func Enter(name string) (leave func()) {
	g := goroutine()
	if !note(Call{g, name}) {
		return func() {}
	}
	return func() { note(Call{Goroutine: g}) }
}

func note(c Call) bool {
	mu.Lock()
	defer mu.Unlock()
	if on {
		calls = append(calls, c)
	}
	return on
}

// goroutine returns the number of the goroutine, as a stack trace shows it.
func goroutine() int {
	var line [64]byte
	text := line[:runtime.Stack(line[:], false)]
	n, _ := strconv.Atoi(string(bytes.Fields(text)[1]))
	return n
}
