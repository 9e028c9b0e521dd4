package backoff

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Policy decides how long to wait before the next try, and how long that try may take. A Policy is
// immutable, and safe to share between goroutines and connections: all that varies is in the [History].
//
// A Policy with a method Start(r *rand.Rand) Step is asked by that for the limits on the first dial of a
// connection. [First], [Limit] and [WithTimeouts] pass it on.
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
	MinWait       time.Duration // the least wait, to which a shorter one is raised: after ClassSlow a draw as [SlowWait] says, else 0
	Verdict       Verdict       // on the try or session that has just ended, after the rules of the package comment
	RetryAfterFor time.Duration // time since the first of an unbroken run of Retry-After answers; 0 if this is the first

	// Only package reconnect sets these.
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
//
// Package reconnect takes a handshake to hang when its limit is over, or after 10 s if that is zero. It keeps the
// handshake, and dials again beside it. If that hangs too, it is given up, or takes the place of the one that was
// kept, if its Step has Swap.
type Step struct {
	Wait       time.Duration // before the next try
	Connect    time.Duration // the limit on name resolution and TCP, and on the answer of a proxy
	Handshake  time.Duration // the limit on TLS and the protocol's upgrade
	Swap       bool          // for package reconnect: see above
	SwapIfFull bool          // likewise, but only if the dial has found the backlog of its server full: see [Adaptive]
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

// First returns p with another first wait, drawn from [0, spread). That wait decides how a fleet comes
// back after a deploy, because p knows nothing yet (RFC 6455, section 7.2.3, asks for it). All later waits
// come from p, whose History does not count the first wait: N is one less, and Prev is 0 at p's own first
// wait. The first Step has no limits, so put [WithTimeouts] and [Limit] around First, not into it.
//
// A spread of 0 or less means no first wait, as a single client may wish. A nil p means [Default].
func First(spread time.Duration, p Policy) Policy {
	return &first{spread: min(spread, span.Longest), policy: orDefault(p)}
}

type first struct {
	spread time.Duration
	policy Policy
}

func (f *first) Start(r *rand.Rand) Step { return start(f.policy, r) }
func (f *first) SlowWait() SlowWait      { return slowWait(f.policy) }

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

// Limit returns p with an end. It gives up after so many waits, and instead of a wait that would end later
// than elapsed after the loss of the connection, or after the start. A wait includes the Retry-After of
// the server and the time to which [History.MinWait] raises it. An argument of zero or less means: no such
// limit. A nil p means [Default].
//
// Both limits begin again with each outage. A session of 2 s or more that was not stable takes 30 s off the
// outage, and ends an outage that is not older. So where sessions are short but better than none, Limit may
// never give up.
//
// With 3 attempts a connection that was lost is tried three times. Package retry makes four tries, because
// it does not wait before the first.
func Limit(p Policy, attempts int, elapsed time.Duration) Policy {
	return &limit{policy: orDefault(p), attempts: attempts, elapsed: elapsed}
}

type limit struct {
	policy   Policy
	attempts int
	elapsed  time.Duration
}

func (l *limit) Start(r *rand.Rand) Step { return start(l.policy, r) }
func (l *limit) SlowWait() SlowWait      { return slowWait(l.policy) }

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

// Gate holds the dials to one host until they may begin. It paces them, and holds all of
// them when the host tells one of them to wait. It is the same interface as
// reconnect.Gate. It must be safe for concurrent use.
type Gate interface {
	// Acquire waits until a dial to host may begin, or until ctx ends. Unless it returns
	// an error, done is called exactly once, with the verdict on the dial: ClassOK if
	// it succeeded, ClassStop if that says nothing about the host.
	Acquire(ctx context.Context, host string) (done func(Verdict), err error)
}

// Uniform draws from [low, high); a negative bound counts as 0. If high is not above low
// it returns low and draws nothing.
func Uniform(r *rand.Rand, low, high time.Duration) time.Duration { return span.Uniform(r, low, high) }

// Rand returns random numbers of the runtime, which need no seed. Unlike other values of
// its type it has no state, so that any number of goroutines may use it at once.
func Rand() *rand.Rand { return shared }

var shared = rand.New(global{})

type global struct{}

func (global) Uint64() uint64 { return rand.Uint64() }
