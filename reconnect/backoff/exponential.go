package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff/internal/span"
)

// Exponential is truncated exponential backoff: for the wait n, from 0 on, the delay is
// d = min(Cap, Base*Factor^n), and the wait is drawn around d as [Jitter] says. The cap
// comes first and the jitter after it, so that waits do not gather at the cap (Marc
// Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). The zero
// value is full jitter from 1 s, doubling, up to 30 s.
//
// Cheap failures never raise d above Cap. After [ClassOverload], because such a failure
// cost the server work for nothing, d is instead at most
//
//	min(OverloadCap, Cap*Factor^Overloads)
//
// so that each overload since the last stable session moves the cap one step up. After
// the next cheap failure (the server's host is up again, its process is not) the cap is
// Cap again. If all failures are overloads, OverloadCap takes the place of Cap.
type Exponential struct {
	Base        time.Duration // the first delay; default 1 s; negative: no delay at all
	Factor      float64       // growth per wait; default 2; below 1: no growth
	Cap         time.Duration // the longest delay; default 30 s, or Base if that is longer; negative: none
	OverloadCap time.Duration // the longest delay after overload; default, negative, and at least: Cap
	Floor       time.Duration // the shortest wait: the range of a draw begins here if it would begin lower; default, and negative: 0
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
	JitterNone                       // d: all clients in step, for tests and for comparison
)

// Next returns the wait, without limits; a schedule.WithTimeouts around the policy adds them. It never
// gives up.
func (e *Exponential) Next(a History, r *rand.Rand) (Step, bool) {
	base, limit := span.Bounds(e.Base, e.Cap, time.Second, 30*time.Second)
	if a.Verdict.Class == ClassOverload && e.OverloadCap > limit {
		limit = span.Grow(limit, span.OrUsual(e.Factor, 2), a.Overloads, min(e.OverloadCap, span.Longest))
	}
	var high time.Duration
	if (e.Factor == 0 || e.Factor == 2) && base > 0 {
		high = span.Double(base, max(a.N, 0), limit)
	} else {
		high = span.Grow(base, span.OrUsual(e.Factor, 2), a.N, limit)
	}
	low := max(e.Floor, 0)
	if e.Jitter != JitterFull {
		from, to := e.around(high)
		low, high = max(low, from), to
	}
	if high <= low {
		return Step{Wait: min(low, span.Longest)}, true
	}
	return Step{Wait: span.Draw(r, low, high)}, true
}

// around returns the bounds of the wait for the delay d, for any jitter but full.
func (e *Exponential) around(d time.Duration) (low, high time.Duration) {
	switch e.Jitter {
	case JitterEqual:
		return d / 2, d
	case JitterProportional:
	default:
		return d, d
	}
	spread := min(max(span.OrUsual(e.Spread, 0.2), 0), 1)
	by := min(d, time.Duration(spread*float64(d)))
	return d - by, min(d+by, span.Longest)
}
