package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Exponential is truncated exponential backoff: for wait n, from 0 on, the delay is d = min(Cap,
// Base*Factor^n), and the wait is drawn around d as [Jitter] says (Marc Brooker, "Exponential Backoff And
// Jitter", AWS Architecture Blog, 2015). The zero value has the defaults.
//
// After [ClassOverload] the cap is min(OverloadCap, Cap*Factor^Overloads) instead. After the next cheap failure it
// is Cap again.
type Exponential struct {
	Base        time.Duration // first delay; default 1 s; negative means none
	Factor      float64       // growth per wait; default 2; below 1: no growth
	Cap         time.Duration // longest delay; default 30 s, or Base if longer; negative means none
	OverloadCap time.Duration // longest delay after an overload; default, negative, and at least: Cap
	Spread      float64       // of JitterProportional; default 0.2; above 1: 1; negative means 0
	Jitter      Jitter        // default JitterFull
}

// Jitter says how a wait is drawn around a delay d.
type Jitter uint8

// The kinds of jitter.
const (
	JitterFull         Jitter = iota // [0, d): mean d/2; spreads a herd best
	JitterEqual                      // [d/2, d): mean 3d/4
	JitterProportional               // [d(1-Spread), d(1+Spread)): mean d; may exceed the cap by Spread
	JitterNone                       // d: all clients in step, for tests and comparison
)

// Next returns the wait, without limits: [WithTimeouts] adds them. It never gives up.
func (e *Exponential) Next(a History, r *rand.Rand) (Step, bool) {
	base, limit := span.Bounds(e.Base, e.Cap, time.Second, 30*time.Second)
	if a.Verdict.Class == ClassOverload && e.OverloadCap > limit {
		limit = span.Grow(limit, span.OrUsual(e.Factor, 2), a.Overloads, min(e.OverloadCap, span.Longest))
	}
	d := span.Grow(base, span.OrUsual(e.Factor, 2), a.N, limit)
	low, high := time.Duration(0), d
	switch e.Jitter {
	case JitterFull:
	case JitterEqual:
		low = d / 2
	case JitterProportional:
		low, high = span.Around(d, e.Spread, 0.2)
	default:
		low = d
	}
	return Step{Wait: span.Uniform(r, low, high)}, true
}
