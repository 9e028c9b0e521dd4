package backoff

import (
	"math/rand/v2"
	"time"
)

// First returns p with a first wait of its own, drawn from [0, spread). That wait decides
// how a fleet comes back after a deploy, because p has nothing to go by yet (RFC 6455,
// section 7.2.3, asks for it). All later waits are those of p, which sees an Attempt as
// if the first wait had not been: N is one less, and Prev is 0 at p's own first wait.
// The first Step has no limits, so put [Patient] and [Limit] around First, not into it.
//
// A spread of 0 or less means no first wait, as a single client may wish. A nil p means
// [Default].
func First(spread time.Duration, p Policy) Policy {
	return &first{spread: min(spread, longest), policy: orDefault(p)}
}

type first struct {
	spread time.Duration
	policy Policy
}

func (f *first) Next(a Attempt, r *rand.Rand) (Step, bool) {
	if a.N <= 0 {
		return Step{Wait: Uniform(r, 0, f.spread)}, true
	}
	a.N--
	if a.N == 0 {
		a.Prev = 0
	}
	return f.policy.Next(a, r)
}
