package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Paced waits by how long the outage has lasted ([backoff.History.Elapsed]), not by the number of tries:
//
//   - The first wait is drawn from [0, Spread). A client that is refused in the first half of Spread
//     tries once more in the second half: its next try is drawn from [Spread/2, Spread) since the loss.
//     This does not hold after [backoff.ClassOverload].
//   - All later waits are drawn from [d/2, d), where d = min(Cap, max(Base, Share*Elapsed)). After
//     ClassOverload, OverloadCap takes the place of Cap.
//   - When the server told us to wait (Verdict.RetryAfter), the wait after that is drawn from [0, d),
//     where d = min(Cap, max(Base, Share*Elapsed-RetryAfter, RetryAfter)). So clients that got the same
//     RetryAfter do not come at one instant, and the first comes soon after it.
//
// So clients try about every Base while the outage is young, no client is away for much longer than
// 1+Share times the outage, and a herd that a server turns away thins out in proportion to the time that
// it takes. Half of d is certain, because the longest wait decides when the last of a herd is back, and
// the mean wait how many tries that costs. The numbers come from the simulations in bench/DEFAULTS.md. The
// zero value has the defaults.
type Paced struct {
	Spread      time.Duration // the range of the first wait; default 2 s; negative: no first wait of its own
	Base        time.Duration // the least d; default 2.4 s; negative: 0
	Share       float64       // the share of the outage that d is; default 0.5; negative: 0
	Cap         time.Duration // the greatest d; default 30 s, or Base if that is longer; negative: none
	OverloadCap time.Duration // the greatest d after overload; default twice Cap; negative, and at least: Cap
}

// Next returns the wait, and never gives up.
func (p *Paced) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	spread := p.Spread
	if spread == 0 {
		spread = 2 * time.Second
	}
	spread = min(spread, span.Longest)
	elapsed := max(a.Elapsed, 0)
	overload := a.Verdict.Class == backoff.ClassOverload
	told := max(a.Verdict.RetryAfter, 0)
	switch {
	case spread < 0 || told > 0:
	case a.N <= 0:
		return backoff.Step{Wait: span.Uniform(r, 0, spread)}, true
	case elapsed < spread/2 && !overload:
		return backoff.Step{Wait: span.Uniform(r, spread/2-elapsed, spread-elapsed)}, true
	}
	base, limit := span.Bounds(p.Base, p.Cap, 2400*time.Millisecond, 30*time.Second)
	if overload {
		limit = max(limit, min(p.overloadCap(limit), span.Longest))
	}
	d := min(limit, max(base, span.Scaled(elapsed, span.OrUsual(p.Share, 0.5))-told, told))
	if told > 0 {
		return backoff.Step{Wait: span.Uniform(r, 0, d)}, true
	}
	return backoff.Step{Wait: span.Uniform(r, d/2, d)}, true
}

func (p *Paced) overloadCap(limit time.Duration) time.Duration {
	if p.OverloadCap == 0 {
		return 2 * limit
	}
	return p.OverloadCap
}
