package backoff

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// OCPP is the policy of a charging station: OCPP 2.0.1, part 4 ("JSON over WebSockets"), section 5.3,
// "Reconnecting". For anything else use [Default]. The fields are the variables RetryBackOffWaitMinimum,
// RetryBackOffRepeatTimes and RetryBackOffRandomRange of the station's OCPPCommCtrlr:
//
//	the first wait       WaitMinimum + U(0, RandomRange)
//	RepeatTimes more     2*the wait before + U(0, RandomRange)
//	all that follow      the last of those, repeatedly
//
// Waits are not rounded to seconds. They depend on [History.Prev].
type OCPP struct {
	WaitMinimum time.Duration // default 10 s; negative means 0
	RepeatTimes int           // how often the wait doubles; default 3; negative means never
	RandomRange time.Duration // default 10 s; negative means none
}

// Next returns the wait. It never gives up.
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
