package budget

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Window is a rolling window: at most N events in any interval of length Per, wherever it begins. A token
// bucket is no substitute: one of 5/s can pass a burst of 9 events within a second.
//
//	w := budget.Window{N: 5, Per: time.Second}
//	if at := w.At(now); at.After(now) { wait until at }
//	do it
//	w.Take(time.Now())
//
// An interval includes its beginning and not its end. A peer sees a delayed event closer to the next, so make
// Per longer by the variation of the delay, or halve N if it varies by less than Per. A slightly smaller N is not
// enough, because a delayed burst may meet the next.
//
// A Window does not wait. It is not safe for concurrent use. It stores at most N instants of 8 bytes. It may be
// copied, and N and Per may change, only before first use.
type Window struct {
	N   int           // maximum number of events in an interval; 0 and negative mean no limit
	Per time.Duration // length of the interval

	base  time.Time // of the instants
	taken []int64   // instants of the last N events at most, in ns since base, in order from next on, cyclically
	next  int       // the oldest of them, once there are N
}

// Validate returns an error if N or Per is negative, or only one of them is set.
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

// At returns when the next event may happen: now, or when the oldest of the last N leaves the window.
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

// Take records an event at now, even beyond the limit.
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
