package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// ConnectRetry is connect_retry of W. Richard Stevens and Stephen A. Rago, "Advanced
// Programming in the UNIX Environment", section 16.4. It waits 1, 2, 4 s and so on, while
// the wait is at most half of MaxSleep. Then it tries once more and does not sleep again.
// A MaxSleep of 128 s gives seven waits, of 127 s together, and eight tries.
//
// A version that is often quoted tries only while the wait is below 128 s: it makes seven
// tries, and sleeps 64 s after the last one for nothing. Both versions make a new socket
// for each try, because on some systems a socket is useless once connect has failed. An op
// for retry.Do that dials does the same.
//
// Nothing in it is random, so that a herd stays in step.
type ConnectRetry struct {
	MaxSleep time.Duration // default 128 s; negative: one try only
}

// Next waits, and gives up after the longest wait.
func (c *ConnectRetry) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	wait := span.Grow(time.Second, 2, a.N, span.Longest)
	if wait > span.Delay(c.MaxSleep, 128*time.Second)/2 {
		return backoff.Step{}, false
	}
	return backoff.Step{Wait: wait}, true
}
