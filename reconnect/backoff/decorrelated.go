package backoff

import (
	"math/rand/v2"
	"time"
)

// Decorrelated is decorrelated jitter (Marc Brooker, "Exponential Backoff And Jitter",
// AWS Architecture Blog, 2015): the first wait is drawn from [Base, 3*Base), each further
// one from [Base, 3*the one before), and is at most Cap. It is a Markov chain, because it
// goes by [Attempt.Prev] and not by N. Before the cap its mean grows by half each time.
//
// As published it cuts after drawing, so that in a long outage 38 % of the waits (with
// the defaults) are exactly Cap. With NoAtom it draws from
// [Base, min(Cap, 3*the one before)) instead, and none is.
type Decorrelated struct {
	Base   time.Duration // the shortest wait; default 1 s; negative: no wait at all
	Cap    time.Duration // the longest wait; default 30 s, or Base if that is longer; negative: none
	NoAtom bool          // cut before drawing, not after
}

// Next returns the wait, without limits; a [Patient] around the policy adds them. It never
// gives up.
func (d *Decorrelated) Next(a Attempt, r *rand.Rand) (Step, bool) {
	base, limit := bounds(d.Base, d.Cap, time.Second, 30*time.Second)
	last := base
	if a.N > 0 {
		last = max(a.Prev, base)
	}
	high := longest
	if last < longest/3 {
		high = 3 * last
	}
	if d.NoAtom {
		high = min(high, limit)
	}
	return Step{Wait: min(Uniform(r, base, high), limit)}, true
}
