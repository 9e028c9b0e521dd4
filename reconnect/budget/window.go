package budget

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Window is a rolling window: at most N events in any interval of the length Per, wherever
// the interval begins. Venues and APIs limit messages and connections in this way, and
// close the connection of a client that exceeds the limit. A token bucket is no
// substitute, because it lets a burst out on top of its rate: a bucket of 5/s can let 9
// events out within a second.
//
//	w := budget.Window{N: 5, Per: time.Second}
//	if at := w.At(now); at.After(now) { wait until at }
//	do it
//	w.Take(time.Now())
//
// An interval includes its beginning and not its end. Whoever counts at the other end of a
// network sees events closer together than they were, when the first of them is delayed.
// Leave room for that: a Per that is longer by as much as the delay varies. An N that is a little
// smaller is no room, because of two bursts the first may be delayed and meet the second; half
// the N is, as long as the delay varies by less than Per.
//
// A Window does not wait, and gets the time as an argument. It belongs to one goroutine. It
// remembers N instants at most, in 8 bytes each, and nothing before its first event. A copy
// of a Window that was never used is a window of its own. N and Per must not change after
// that.
type Window struct {
	N   int           // so many events; 0, and negative: no limit
	Per time.Duration // in any interval of this length

	base  time.Time // of the instants
	taken []int64   // instants of the last N events at most, in ns since base, in order from next on, cyclically
	next  int       // the oldest of them, once there are N
}

// Validate reports what is wrong with w: a limit without an interval.
func (w *Window) Validate() error {
	switch {
	case w.N < 0:
		return fmt.Errorf("budget: Window.N is negative: %d", w.N)
	case w.N > 0 && w.Per <= 0:
		return fmt.Errorf("budget: Window.Per must be positive, and is %v", w.Per)
	case w.N == 0 && w.Per != 0:
		return errors.New("budget: Window.Per without N")
	}
	return nil
}

// At returns when the next event may happen: now, or when the oldest of the last N leaves
// the window. It notes nothing.
func (w *Window) At(now time.Time) time.Time {
	if w.N <= 0 || len(w.taken) < w.N {
		return now
	}
	if at := w.base.Add(time.Duration(w.taken[w.next])).Add(w.Per); at.After(now) {
		return at
	}
	return now
}

// Free returns how many events may happen now: at least one if At returns now.
func (w *Window) Free(now time.Time) int {
	if w.N <= 0 {
		return math.MaxInt
	}
	since := int64(now.Sub(w.base) - w.Per)
	free := w.N - len(w.taken)
	for i := range w.taken { // the oldest first
		if at := w.taken[(w.next+i)%len(w.taken)]; at > since {
			break
		}
		free++
	}
	return free
}

// Take notes an event that has happened now. It does not ask whether it might: one that
// happened anyway counts as well.
func (w *Window) Take(now time.Time) {
	if w.N <= 0 {
		return
	}
	if w.base.IsZero() {
		w.base = now
	}
	at := int64(now.Sub(w.base))
	if len(w.taken) < w.N {
		if room := len(w.taken); room == cap(w.taken) {
			w.taken = append(make([]int64, 0, min(w.N, max(2*room, 8))), w.taken...)
		}
		w.taken = append(w.taken, at)
		return
	}
	w.taken[w.next] = at
	w.next = (w.next + 1) % w.N
}
