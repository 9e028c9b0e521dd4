//go:build !js

package main

import (
	"sync"
	"time"
)

// tally counts the frames that one end has said, or heard. Any goroutine may call its methods.
// The zero value is ready.
type tally struct {
	mu    sync.Mutex // guards what follows
	seen  map[uint64]bool
	total counts
	last  time.Time // when the last frame came, or was written
}

// frame notes that frame n has come.
func (t *tally) frame(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.seen == nil {
		t.seen = map[uint64]bool{}
	} else {
		t.total.longest = max(t.total.longest, now.Sub(t.last))
	}
	if t.seen[n] {
		t.total.twice++
	}
	t.seen[n] = true
	t.total.frames++
	t.last = now
}

// written notes that the sender has written the last frame. What it waited for that is not a
// pause of its own.
func (t *tally) written() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
}

// counts is what a tally has come to.
type counts struct {
	frames  int
	twice   int           // frames that were not new
	longest time.Duration // the longest pause between two frames
}

func (t *tally) counts() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}
