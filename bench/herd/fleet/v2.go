package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// v2 is the rule that was tried before [backoff.Adaptive], for comparison: it gives a
// handshake 5 s, dials beside it after waits of their own, and counts how often the server
// told it to wait. Two clauses of it are
// left out, because a policy does not know of them: at least 10 s for a dial whose SYN had
// to be sent again, and 30 s, not 15, as the longest wait after a 503.
type v2 struct{}

func (v2) Next(a backoff.History, r *rand.Rand) (s backoff.Step, ok bool) {
	const sec = time.Second
	share := func(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
	s.Connect, s.Handshake = 16*sec, 5*sec
	wait, limit := 1/60., 1/30.
	if a.Refused {
		wait, limit = 0.1, 0.1
	}
	if a.Hang > 0 {
		s.Handshake = max(5*sec, share(a.Hang, limit))
		if a.DialsBeside == 0 && !a.Refused {
			s.Handshake, s.Swap = 15*sec, true
		}
	}
	overload, told := a.Verdict.Class == backoff.ClassOverload, a.Verdict.RetryAfter
	switch {
	case told > 0:
		spread := told
		if n := a.RetryAfterFor / told; n < 2 { // the first time, and the second
			spread = told / (4 >> n)
		}
		d := max(2400*time.Millisecond, spread)
		if spread == told {
			d = max(d, a.Elapsed/2-told)
		}
		s.Wait = backoff.Uniform(r, 0, min(d, 60*sec))
	case a.Hang > 0:
		d := max(min(5*sec, max(1600*time.Millisecond, share(a.Elapsed, 0.35))), share(a.Hang, wait))
		s.Wait = backoff.Uniform(r, d/2, d)
	case a.N == 0:
		s.Wait = backoff.Uniform(r, 0, 2*sec)
	case a.Elapsed < sec && !overload:
		s.Wait = backoff.Uniform(r, sec-a.Elapsed, 2*sec-a.Elapsed)
	default:
		cap := 10 * sec
		if overload {
			cap = 15 * sec
		}
		d := min(cap, max(2400*time.Millisecond, a.Elapsed/2))
		s.Wait = backoff.Uniform(r, d/2, d)
	}
	return s, true
}
