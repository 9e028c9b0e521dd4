package backoff

import (
	"math/rand/v2"
	"time"
)

// SlowWait is the minimum wait after [ClassSlow]. For the n-th ClassSlow in a row, from 0 on,
//
//	d = min(Max, Min*1.2^n)
//
// and the wait is random in [d/2, 3d/2), or that of the [Policy] if longer. The zero value has the defaults.
//
// A verdict of another class ends the row, and so does a session that was ready for Max or longer, but not a
// shorter one or a hanging handshake.
type SlowWait struct {
	Min time.Duration // first d; default 10 s; negative means 0, so that the Policy alone decides
	Max time.Duration // greatest d; default 2 min, or Min if longer; negative means none
}

// WithSlow returns p with the minimum wait w after [ClassSlow]. [First], [Limit] and [WithTimeouts]
// pass on a Policy's own method SlowWait() SlowWait. A nil p means [Default].
func WithSlow(p Policy, w SlowWait) Policy { return &slow{orDefault(p), w} }

type slow struct {
	policy Policy
	wait   SlowWait
}

func (s *slow) Next(a History, r *rand.Rand) (Step, bool) { return s.policy.Next(a, r) }
func (s *slow) Start(r *rand.Rand) Step                   { return start(s.policy, r) }
func (s *slow) SlowWait() SlowWait                        { return s.wait }

// slowWait returns the SlowWait of p, which is the zero value if p has none.
func slowWait(p Policy) SlowWait {
	if s, ok := p.(interface{ SlowWait() SlowWait }); ok {
		return s.SlowWait()
	}
	return SlowWait{}
}
