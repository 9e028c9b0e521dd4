package backoff

import (
	"math/rand/v2"
	"time"
)

// SlowWait is the least wait after [ClassSlow], such as after a 401. For the n-th ClassSlow in a row, from 0 on,
//
//	d = min(Max, Min*1.2^n)
//
// and the wait is random in [d/2, 3d/2), or as long as the [Policy] says if that is longer. So a refusal that
// is over after half a minute costs seconds, and a refusal that lasts costs its server 730 dials a day. The
// zero value has the defaults. [WithSlow] gives a Policy other ones.
//
// A verdict of another class ends the row. So does a session that was ready for Max or longer. A shorter
// session does not, because a server may let clients in and refuse them later, and a handshake that hangs
// does not.
type SlowWait struct {
	Min time.Duration // the first d; default 10 s; negative: 0, so that the Policy alone decides
	Max time.Duration // the greatest d; default 2 min, or Min if that is longer; negative: none
}

// WithSlow returns p with another wait after [ClassSlow]. A Policy with a method SlowWait() SlowWait has a
// wait of its own, and [First], [Limit] and [WithTimeouts] pass it on. A nil p means [Default].
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
