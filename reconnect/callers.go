package reconnect

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// callers knows the goroutines of a [Conn] that run code of the user's, so that
// Close can tell a call from inside a callback, which must not wait for the
// callback to return, from any other, which must. Go has no better way to tell
// than the number in a stack trace; it is read once per goroutine, and at each
// Close.
type callers struct {
	mu  sync.Mutex // guards ids
	ids []uint64
}

// enter says that the calling goroutine is one of ours, until it calls leave.
func (c *callers) enter() {
	id := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
}

func (c *callers) leave() {
	id := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.ids, id)
	c.ids = slices.Delete(c.ids, i, i+1)
}

// inside reports whether the calling goroutine is one of ours.
func (c *callers) inside() bool {
	id := goroutine()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.ids, id)
}

// goroutine returns the number of the calling goroutine.
func goroutine() uint64 {
	var buf [40]byte
	line := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(line, []byte(" "))
	id, _ := strconv.ParseUint(string(digits), 10, 64)
	return id
}
