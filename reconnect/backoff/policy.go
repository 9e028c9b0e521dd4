package backoff

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff/internal/span"
)

// Policy decides how long to wait before the next try, and how long that try may take.
// Implementations are immutable, and safe to share between goroutines and connections,
// because whatever varies is in the [History].
type Policy interface {
	// Next returns the step that follows a, and draws what is random from r. False
	// means: give up. It must not block and must not keep r.
	Next(a History, r *rand.Rand) (Step, bool)
}

// History is what has happened so far, for a [Policy] to decide by. Since means: since the last
// stable session, or since the start.
type History struct {
	N             int           // number of waits since; 0: this is the first wait
	Overloads     int           // number of failures since that were ClassOverload (timeout, 429, 503), this one included
	Prev          time.Duration // the wait before this one, as the policy drew it; 0 when N is 0
	Elapsed       time.Duration // age of the outage: time since the connection was lost, or since the start
	MinWait       time.Duration // the least wait, to which a shorter one is raised: minutes after ClassSlow, else 0
	Verdict       Verdict       // on the try or session that has just ended, after the rules of schedule.Outage
	Streak        int           // number of verdicts in a row with the class of this one, this one included; the class counts as it was before these rules
	Stable        bool          // the session that has just ended was stable
	RetryAfterFor time.Duration // time since the first of an unbroken run of Retry-After answers; 0 if this is the first

	// Only a schedule.Dials sets these.
	Refused     bool          // a dial was refused or reset in this outage
	Hung        bool          // the verdict is on a handshake that hangs
	Hang        time.Duration // time since the first handshake hung; 0: none hangs
	DialsBeside int           // number of dials that have begun beside the handshake that hangs
}

// ErrGaveUp is the error, or a part of it, with which whoever retries ends because its policy
// gave up.
var ErrGaveUp = errors.New("gave up")

// Step is how long to wait, and the limits on the try after it. A zero limit means
// [DefaultConnect] or [DefaultHandshake].
type Step struct {
	Wait      time.Duration // before the next try
	Connect   time.Duration // the limit on name resolution and TCP, and on the answer of a proxy
	Handshake time.Duration // the limit on TLS and the protocol's upgrade; a schedule.Dials takes the handshake to hang then
	Swap      bool          // if the handshake after this step hangs too, a schedule.Dials keeps it, and gives up the one that it has kept until then
}

// start returns the Step of p for the first dial of all, of which only the limits count. A
// Policy that has limits for it has a method Start, and one around another passes it on.
func start(p Policy, r *rand.Rand) Step {
	if s, ok := p.(interface{ Start(r *rand.Rand) Step }); ok {
		return s.Start(r)
	}
	return Step{}
}

// The limits on one try where a [Step] has none. DefaultConnect leaves time for a resolver that
// waits 5 s for each of two name servers, and for the fifth SYN, which is sent after 15 s (RFC
// 6298).
const (
	DefaultConnect   = 16 * time.Second
	DefaultHandshake = 30 * time.Second
)

// First returns p with another first wait, drawn from [0, spread). That wait decides
// how a fleet comes back after a deploy, because p knows nothing yet (RFC 6455, section
// 7.2.3, asks for it). All later waits come from p, whose History does not
// count the first wait: N is one less, and Prev is 0 at p's own first wait.
// The first Step has no limits, so put schedule.WithTimeouts and [Limit] around First, not into it.
//
// A spread of 0 or less means no first wait, as a single client may wish. A nil p means
// [Default].
func First(spread time.Duration, p Policy) Policy {
	return &first{spread: min(spread, span.Longest), policy: orDefault(p)}
}

type first struct {
	spread time.Duration
	policy Policy
}

func (f *first) Start(r *rand.Rand) Step { return start(f.policy, r) }

func (f *first) Next(a History, r *rand.Rand) (Step, bool) {
	if a.N <= 0 {
		return Step{Wait: span.Uniform(r, 0, f.spread)}, true
	}
	a.N--
	if a.N == 0 {
		a.Prev = 0
	}
	return f.policy.Next(a, r)
}

// Limit returns p with an end: it gives up after so many waits, and instead of a wait
// that would end later than elapsed after the loss of the connection, or after the
// start. The time that a server told us to wait counts as a part of that wait, and so does
// the time to which [History.MinWait] raises it. An argument of zero or less means: no such
// limit. A nil p means [Default].
//
// Both begin anew with each outage. A session of 2 s or more that was not stable takes 30 s off
// the outage, and ends one that is not older (see schedule.Dials). So where sessions are short but
// better than none, Limit may never give up.
//
// With 3 attempts a connection that was lost is tried three times. Package retry makes four
// tries, because it does not wait before the first.
func Limit(p Policy, attempts int, elapsed time.Duration) Policy {
	return &limit{policy: orDefault(p), attempts: attempts, elapsed: elapsed}
}

type limit struct {
	policy   Policy
	attempts int
	elapsed  time.Duration
}

func (l *limit) Start(r *rand.Rand) Step { return start(l.policy, r) }

func (l *limit) Next(a History, r *rand.Rand) (Step, bool) {
	if l.attempts > 0 && a.N >= l.attempts {
		return Step{}, false
	}
	s, ok := l.policy.Next(a, r)
	if !ok || l.elapsed <= 0 {
		return s, ok
	}
	left := l.elapsed - max(a.Elapsed, 0)
	wait := max(s.Wait, a.MinWait, 0)
	told := max(a.Verdict.RetryAfter, 0)
	return s, told <= left && wait <= left-told
}
