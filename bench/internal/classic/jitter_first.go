package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// JPillora is jpillora/backoff with jitter. It is the rule of recws (2 s, 30 s, 1.5) and,
// counting from 1, of centrifuge-go (200 ms, 20 s, 2):
//
//	min(Max, U(Min, d)) where d = Min*Factor^n
//
// The first wait of every client is exactly Min. The jitter comes first and the cap after
// it, so that (d-Max)/(d-Min) of the waits are exactly Max.
type JPillora struct {
	Min    time.Duration // default 100 ms; negative: no wait
	Max    time.Duration // default 10 s; negative: no wait
	Factor float64       // default 2; below 1: no growth
}

// Next returns the wait, and never gives up.
func (j *JPillora) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	shortest := span.Delay(j.Min, 100*time.Millisecond)
	d := span.Grow(shortest, span.OrUsual(j.Factor, 2), a.N, span.Longest)
	return backoff.Step{Wait: min(span.Uniform(r, shortest, d), span.Delay(j.Max, 10*time.Second))}, true
}

// Stubborn is the rule of stubborn-io (Rust):
//
//	min(Max, U(d*(1-Spread), d*(1+Spread))) where d = Base*Factor^n
//
// The jitter comes first and the cap after it, so that all clients are in step once
// d*(1-Spread) is above Max.
type Stubborn struct {
	Base   time.Duration // default 4 s; negative: no wait
	Factor float64       // default 2; below 1: no growth
	Spread float64       // default 0.05; above 1: 1; negative: none
	Max    time.Duration // default 30 min; negative: no wait
}

// Next returns the wait, and never gives up.
func (s *Stubborn) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	d := span.Grow(span.Delay(s.Base, 4*time.Second), span.OrUsual(s.Factor, 2), a.N, span.Longest)
	return backoff.Step{Wait: min(around(r, d, s.Spread, 0.05), span.Delay(s.Max, 30*time.Minute))}, true
}
