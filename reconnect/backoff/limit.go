package backoff

import (
	"math/rand/v2"
	"time"
)

// Limit is p, but gives up after so many waits, and instead of a wait that
// would end later than elapsed after the connection was lost (or the start).
// That wait includes what a server told us to wait and what
// [Attempt.Least] raises it to. Zero or less means: no such limit. A nil p is
// [Default].
//
// With attempts at 3 a connection that was lost is tried three times; a
// [Retry] makes four tries, since none of its waits comes before the first.
func Limit(p Policy, attempts int, elapsed time.Duration) Policy {
	return &limit{policy: orDefault(p), attempts: attempts, elapsed: elapsed}
}

type limit struct {
	policy   Policy
	attempts int
	elapsed  time.Duration
}

func (l *limit) Next(a Attempt, r *rand.Rand) (Step, bool) {
	if l.attempts > 0 && a.N >= l.attempts {
		return Step{}, false
	}
	s, ok := l.policy.Next(a, r)
	if !ok || l.elapsed <= 0 {
		return s, ok
	}
	left := l.elapsed - max(a.Elapsed, 0)
	wait := max(s.Wait, a.Least, 0)
	told := max(a.Verdict.RetryAfter, 0)
	return s, told <= left && wait <= left-told
}
