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
// An interval includes its beginning and not its end. The other end of a network may see events closer
// together than they were, because the first of them was delayed. Leave room for that: make Per longer
// by as much as the delay varies, or halve N if the delay varies by less than Per. A slightly smaller
// N is no room, because a burst that is delayed may meet the next burst.
//
// A Window does not wait, and gets the time as an argument. It belongs to one goroutine. It
// remembers at most N instants, in 8 bytes each. A Window may be copied, and N and Per may change, only
// before its first use.
type Window struct {
	N   int           // the most events in an interval; 0, and negative: no limit
	Per time.Duration // the length of the interval

	base  time.Time // of the instants
	taken []int64   // instants of the last N events at most, in ns since base, in order from next on, cyclically
	next  int       // the oldest of them, once there are N
}

// Validate returns an error if N or Per is negative, or if only one of them is set.
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
// the window. At notes no event.
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

// Take notes an event that has happened now. It does not ask whether the event might happen: an event
// beyond the limit counts as well.
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
