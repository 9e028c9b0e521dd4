package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Decorrelated is decorrelated jitter (Marc Brooker, "Exponential Backoff And Jitter",
// AWS Architecture Blog, 2015): the first wait is drawn from [Base, 3*Base), each further
// one from [Base, 3*the one before), and is at most Cap. It is a Markov chain, because it
// depends on [backoff.History.Prev] and not on N. Before the cap its mean grows by half each time.
//
// As published it cuts after drawing, so that in a long outage 38 % of the waits (with
// the defaults) are exactly Cap. With NoAtom it draws from
// [Base, min(Cap, 3*the one before)) instead, and none is.
type Decorrelated struct {
	Base   time.Duration // the shortest wait; default 1 s; negative: no wait at all
	Cap    time.Duration // the longest wait; default 30 s, or Base if that is longer; negative: none
	NoAtom bool          // cut before drawing, not after
}

// Next returns the wait, and never gives up.
func (d *Decorrelated) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	base, limit := span.Bounds(d.Base, d.Cap, time.Second, 30*time.Second)
	last := base
	if a.N > 0 {
		last = max(a.Prev, base)
	}
	high := span.Longest
	if last < span.Longest/3 {
		high = 3 * last
	}
	if d.NoAtom {
		high = min(high, limit)
	}
	return backoff.Step{Wait: min(span.Uniform(r, base, high), limit)}, true
}

// Normal is backoff with normally distributed noise, as Andrey Smirnov's demonstration of a retry storm
// describes it ("Exponential Backoff, or how not to crash a server", on Habr;
// github.com/smira/exponential-backoff). The first wait is Min, without noise; each further one is
//
//	d + N(0, Jitter*d) where d = min(Max, Factor*the wait before)
//
// so that the noise compounds: 10 %, 14 %, 17 %, 20 % ... of the wait. A draw below 0 is 0. The wait before
// ([backoff.History.Prev]) counts as at least Min, so that such a draw does not end all waiting. The noise
// comes after Max, so that a wait may exceed it. The first wait is the same for all clients; put
// [backoff.First] around the policy.
type Normal struct {
	Min    time.Duration // the first wait; default 100 ms; negative: no wait at all
	Factor float64       // growth per wait; default 2; below 1: no growth
	Jitter float64       // standard deviation as a share of d; default 0.1; negative: none
	Max    time.Duration // the longest wait before noise; default 15 min, or Min if that is longer; negative: none
}

// Next returns the wait, and never gives up.
func (n *Normal) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	shortest, limit := span.Bounds(n.Min, n.Max, 100*time.Millisecond, 15*time.Minute)
	if a.N <= 0 || shortest == 0 {
		return backoff.Step{Wait: shortest}, true
	}
	jitter := max(span.OrUsual(n.Jitter, 0.1), 0)
	d := span.Grow(max(a.Prev, shortest), span.OrUsual(n.Factor, 2), 1, limit)
	wait := float64(d) * (1 + float64(jitter*r.NormFloat64())) // the conversion rounds, so that all machines draw the same
	switch {
	case wait >= float64(span.Longest):
		return backoff.Step{Wait: span.Longest}, true
	case wait > 0:
		return backoff.Step{Wait: time.Duration(wait)}, true
	}
	return backoff.Step{}, true
}
