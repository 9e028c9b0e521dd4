package backoff

import (
	"math/rand/v2"
	"time"
)

// Policy says how long to wait before the next try, and how patient that try
// may be. Implementations are immutable and safe to share between goroutines
// and connections; whatever varies is in the [Attempt].
type Policy interface {
	// Next returns the step that follows a, drawing what is random from r.
	// False means: give up. It must not block and must not keep r.
	Next(a Attempt, r *rand.Rand) (Step, bool)
}

// Attempt is what a [Policy] may know when it is asked for the next step.
type Attempt struct {
	N         int           // waits already made since the last stable session, or since the start; 0: this is the first one
	Overloads int           // of the failures behind those waits and this one, how many were judged Overload (timeout, 429, 503)
	Prev      time.Duration // the wait before this one, as the policy drew it; 0 when N is 0
	Elapsed   time.Duration // since the connection was lost, or since the start
	Least     time.Duration // what the wait will be raised to if it is shorter: minutes where the verdict is Slow, else 0
	Verdict   Verdict       // of the attempt or session that has just ended
}

// Step is how long to wait, and then how patient to be. A zero limit means
// [DefaultConnect] or [DefaultHandshake].
type Step struct {
	Wait      time.Duration // before the next try
	Connect   time.Duration // limit on name resolution, TCP (and a proxy's answer)
	Handshake time.Duration // limit on what follows: TLS and the protocol's upgrade
}

// The limits on one try where a [Step] has none.
const (
	DefaultConnect   = 10 * time.Second
	DefaultHandshake = 30 * time.Second
)
