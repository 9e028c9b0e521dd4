package backoff

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// OCPP is how a charging station reconnects: OCPP 2.0.1, part 4 ("JSON over WebSockets"), section 5.3,
// "Reconnecting", which the certification of a station tests. For anything else [Default] is better. The fields
// are the variables RetryBackOffWaitMinimum, RetryBackOffRepeatTimes and RetryBackOffRandomRange of the station's
// OCPPCommCtrlr:
//
//	the first wait       WaitMinimum + U(0, RandomRange)
//	RepeatTimes more     2*the wait before + U(0, RandomRange)
//	all that follow      the last of those, repeatedly
//
// OCPP has no values for these variables: an operator sets them. With the defaults here the waits are
// 10 to 20 s, 20 to 50 s, 40 to 110 s, and from then on 80 to 230 s. After the last doubling a station
// waits the same each time. The variables are whole seconds, and so are the draws of some stations;
// this policy draws any time. It is a Markov chain, because it depends on [History.Prev].
type OCPP struct {
	WaitMinimum time.Duration // default 10 s; negative: 0
	RepeatTimes int           // how often the wait doubles; default 3; negative: never
	RandomRange time.Duration // default 10 s; negative: none
}

// Next returns the wait, and never gives up.
func (o *OCPP) Next(a History, r *rand.Rand) (Step, bool) {
	least, spread := span.Delay(o.WaitMinimum, 10*time.Second), span.Delay(o.RandomRange, 10*time.Second)
	switch {
	case a.N <= 0:
	case a.N > cmp.Or(o.RepeatTimes, 3):
		return Step{Wait: min(max(a.Prev, 0), span.Longest)}, true
	default:
		least = span.Grow(a.Prev, 2, 1, span.Longest)
	}
	return Step{Wait: span.Uniform(r, least, least+min(spread, span.Longest-least))}, true
}
