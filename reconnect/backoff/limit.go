package backoff

import (
	"math/rand/v2"
	"time"
)

// Limit returns p with an end: it gives up after so many waits, and instead of a wait
// that would end later than elapsed after the loss of the connection, or after the
// start. What a server told us to wait counts as part of that wait, and so does what
// [Attempt.Least] raises it to. An argument of zero or less means: no such limit. A nil
// p means [Default].
//
// With 3 attempts a connection that was lost is tried three times. A [Retry] makes four
// tries, because it does not wait before the first.
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
