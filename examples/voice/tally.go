package main

import (
	"fmt"
	"sync"
	"time"
)

// frames counts the frames of a call, at both ends.
type frames struct{ toService, toCaller tally }

// once reports whether every frame arrived once.
func (f *frames) once() bool {
	return f.toService.faults() == [2]int{} && f.toCaller.faults() == [2]int{}
}

// tally counts the frames of one direction. Any goroutine may call its methods. The zero value is
// ready.
type tally struct {
	mu    sync.Mutex // guards the other fields
	sent  int
	came  int
	seen  map[uint64]bool
	high  uint64        // the highest number of a frame that came
	last  time.Time     // when the last frame came
	pause time.Duration // the longest between two frames that came
}

func (t *tally) send() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
}

// receive notes that frame n has come.
func (t *tally) receive(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.seen == nil {
		t.seen, t.last = map[uint64]bool{}, now
	}
	t.seen[n] = true
	t.high = max(t.high, n)
	t.came++
	t.pause, t.last = max(t.pause, now.Sub(t.last)), now
}

// complete reports whether every frame has come up to the newest that has.
func (t *tally) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(len(t.seen)) == t.high
}

// faults returns how many frames are missing, and how many came again.
func (t *tally) faults() [2]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return [2]int{t.sent - len(t.seen), t.came - len(t.seen)}
}

func (t *tally) String() string {
	faults := t.faults()
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d sent, %d received, %d missing, %d twice, longest pause %v", t.sent, t.came, faults[0], faults[1], t.pause.Round(time.Millisecond))
}
