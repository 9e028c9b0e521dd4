package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// ConnectRetry is connect_retry of W. Richard Stevens and Stephen A. Rago, "Advanced
// Programming in the UNIX Environment", section 16.4: waits of 1, 2, 4 s and so on, while
// they are at most half of MaxSleep; then one last try, and no sleep after it. With 128 s
// there are seven waits, of 127 s together, and eight tries.
//
// A copy that is often quoted tries only while the wait is below 128 s: seven tries, and
// 64 s of sleep after the last of them for nothing. Both make a new socket for each try,
// because on some systems one on which connect has failed is of no use. With
// [backoff.Retry], an op that dials does the same.
//
// Nothing is random in it, so that a herd stays in step.
type ConnectRetry struct {
	MaxSleep time.Duration // default 128 s; negative: one try only
}

// Next waits, and gives up after the longest wait.
func (c *ConnectRetry) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	wait := backoff.Grow(time.Second, 2, a.N, longest)
	if wait > orDefault(c.MaxSleep, 128*time.Second)/2 {
		return backoff.Step{}, false
	}
	return backoff.Step{Wait: wait}, true
}
