package backoff

import (
	"math/rand/v2"
	"time"
)

// Policy decides how long to wait before the next try, and how patient that try may be.
// Implementations are immutable, and safe to share between goroutines and connections,
// because whatever varies is in the [Attempt].
type Policy interface {
	// Next returns the step that follows a, and draws what is random from r. False
	// means: give up. It must not block and must not keep r.
	Next(a Attempt, r *rand.Rand) (Step, bool)
}

// Attempt is what has happened so far, for a [Policy] to decide by.
type Attempt struct {
	N         int           // waits already made since the last stable session, or since the start; 0: this is the first one
	Overloads int           // how many of the failures before those waits and this one were ClassOverload (timeout, 429, 503)
	Prev      time.Duration // the wait before this one, as the policy drew it; 0 when N is 0
	Elapsed   time.Duration // time since the connection was lost, or since the start
	Least     time.Duration // the wait is raised to this if it is shorter: minutes after ClassSlow, else 0
	Verdict   Verdict       // on the try or session that has just ended, after the rules of [Outage.Next]
	Row       int           // how many verdicts in a row, this one included, had the class that it had before these rules
	Stable    bool          // what has just ended was a stable session
	ToldFor   time.Duration // for how long the server has told us to wait, time after time; 0 the first time

	// What follows is known to the Policy of a [Dials] only.
	Refused bool          // a dial was refused or reset in this outage
	Hung    bool          // the verdict is on a handshake that hangs
	Hang    time.Duration // for how long handshakes have hung; 0: none does
	Beside  int           // dials that have begun beside the one that hangs
}

// Step is how long to wait, and how patient the try after it may be. A zero limit means
// [DefaultConnect] or [DefaultHandshake].
type Step struct {
	Wait      time.Duration // before the next try
	Connect   time.Duration // the limit on name resolution and TCP, and on the answer of a proxy
	Handshake time.Duration // the limit on what follows, TLS and the protocol's upgrade; for a [Dials] the time after which it hangs
	Swap      bool          // of two handshakes that hang, a [Dials] gives up the one that it kept until now, not the one after this step
}

// The limits on one try where a [Step] has none. That on connecting leaves time for a
// resolver that waits 5 s for each of two name servers.
const (
	DefaultConnect   = 15 * time.Second
	DefaultHandshake = 30 * time.Second
)
