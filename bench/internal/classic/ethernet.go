package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Ethernet is the truncated binary exponential backoff of IEEE 802.3. After c = N+1
// collisions a station waits for a number of slots that is uniform in 0 .. 2^min(c,10)-1.
// After 16 attempts it gives up.
type Ethernet struct {
	Slot time.Duration // default 51.2 us, 512 bits at 10 Mbit/s; negative: no wait
}

// Next waits, and gives up after fifteen waits.
func (e *Ethernet) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	if a.N >= 15 {
		return backoff.Step{}, false
	}
	slots := time.Duration(1) << min(max(a.N, 0)+1, 10)
	slot := min(span.Delay(e.Slot, 51200*time.Nanosecond), span.Longest/1024)
	return backoff.Step{Wait: span.Uniform(r, 0, slots) * slot}, true
}
