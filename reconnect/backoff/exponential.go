package backoff

import (
	"math/rand/v2"
	"time"
)

// Exponential is truncated exponential backoff: the delay before the wait n (from
// 0) is d = min(Cap, Base*Factor^n), and the wait is drawn around it as [Jitter]
// says: cap first, jitter after, so that waits do not pile up at the cap
// (Brooker, "Exponential Backoff And Jitter", AWS 2015). The zero value is full
// jitter from 1 s, doubling, up to 30 s.
//
// Cheap failures never raise d above Cap. After a failure that cost the server
// work for nothing ([ClassOverload]) d is at most
//
//	min(OverloadCap, Cap*Factor^Overloads)
//
// instead: each overload since the last stable session moves the cap one step up,
// and the next cheap failure (the server's host is up again, its process is not)
// is waited for no longer than Cap. Thus if all failures are overloads,
// OverloadCap takes the place of Cap.
type Exponential struct {
	Base        time.Duration // the first delay; default 1 s; negative: no delay at all
	Factor      float64       // growth per wait; default 2; below 1: no growth
	Cap         time.Duration // the longest delay; default 30 s, or Base if that is longer; negative: none
	OverloadCap time.Duration // the longest delay after overload; default, and at least, Cap
	Floor       time.Duration // the shortest wait: draws come from what lies above it of their range; default 0
	Spread      float64       // of JitterProportional; default 0.2; above 1: 1; negative: 0
	Jitter      Jitter        // default JitterFull
}

// Jitter is how a wait is drawn around a delay d.
type Jitter uint8

// The kinds of jitter.
const (
	JitterFull         Jitter = iota // [0, d): mean d/2; spreads a herd best
	JitterEqual                      // [d/2, d): mean 3d/4
	JitterProportional               // [d(1-Spread), d(1+Spread)): mean d; may exceed the cap by Spread
	JitterNone                       // d: everybody in step, for tests and for comparison
)

// Next returns the wait alone; a [Patient] policy around it adds limits. It never
// gives up.
func (e *Exponential) Next(a Attempt, r *rand.Rand) (Step, bool) {
	base, limit := bounds(e.Base, e.Cap, time.Second, 30*time.Second)
	if a.Verdict.Class == ClassOverload && e.OverloadCap > limit {
		limit = Grow(limit, orUsual(e.Factor, 2), a.Overloads, min(e.OverloadCap, longest))
	}
	var high time.Duration
	if (e.Factor == 0 || e.Factor == 2) && base > 0 {
		high = double(base, max(a.N, 0), limit)
	} else {
		high = Grow(base, orUsual(e.Factor, 2), a.N, limit)
	}
	low := max(e.Floor, 0)
	if e.Jitter != JitterFull {
		from, to := e.around(high)
		low, high = max(low, from), to
	}
	if high <= low {
		return Step{Wait: min(low, longest)}, true
	}
	return Step{Wait: draw(r, low, high)}, true
}

// around returns the bounds of the wait for the delay d, with jitter other than
// full.
func (e *Exponential) around(d time.Duration) (low, high time.Duration) {
	switch e.Jitter {
	case JitterEqual:
		return d / 2, d
	case JitterProportional:
	default:
		return d, d
	}
	spread := min(max(orUsual(e.Spread, 0.2), 0), 1)
	by := min(d, time.Duration(spread*float64(d)))
	return d - by, min(d+by, longest)
}
