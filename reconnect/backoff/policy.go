package backoff

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Policy decides how long to wait before the next attempt, and how long that may take. It is immutable and safe
// for concurrent use.
//
// A method Start(r *rand.Rand) Step, if any, returns the limits on the first dial of a connection. [First],
// [Limit] and [WithTimeouts] pass it on.
type Policy interface {
	// Next returns the step that follows a, or false to give up. It draws from r, which it must not
	// keep. It must not block.
	Next(a History, r *rand.Rand) (Step, bool)
}

// History is what a [Policy] decides by. "Since" refers to the last stable session, or the start.
type History struct {
	N             int           // waits since; 0 at the first wait
	Overloads     int           // failures since that were ClassOverload, this one included
	Prev          time.Duration // previous wait, as drawn by the policy; 0 if N is 0
	Elapsed       time.Duration // age of the outage: time since the connection was lost, or the start
	MinWait       time.Duration // minimum for the wait: after ClassSlow a [SlowWait] draw, else 0
	Verdict       Verdict       // on what has just ended, after the rules of the package comment
	RetryAfterFor time.Duration // time since the first of an unbroken run of Retry-Afters; 0 at the first

	// Set only by package reconnect.
	Refused     bool          // a dial was refused or reset in this outage
	Hung        bool          // the verdict is on a handshake that hangs
	Hang        time.Duration // time since the first handshake hung; 0 if none hangs
	DialsBeside int           // dials begun concurrently with the hanging handshake
}

// ErrGaveUp is returned, possibly wrapped, by a retrier whose policy gave up.
var ErrGaveUp = errors.New("gave up")

// Step is how long to wait, and the limits on the attempt after it. A zero limit means [DefaultConnect] or
// [DefaultHandshake].
//
// Package reconnect considers a handshake hung when its limit is over, or after 10 s if that is zero, and
// dials again concurrently. If that dial hangs too, it is given up, or replaces the kept handshake if its
// Step has Swap.
type Step struct {
	Wait       time.Duration // before the next attempt
	Connect    time.Duration // limit on name resolution, TCP and a proxy's response
	Handshake  time.Duration // limit on TLS and the protocol's upgrade
	Swap       bool          // for package reconnect: see above
	SwapIfFull bool          // likewise, but only if the dial found its server's backlog full: see [Adaptive]
}

// start returns the Step of p for the first dial of all, of which only the limits count. A
// Policy that has limits for it has a method Start, and one around another passes it on.
func start(p Policy, r *rand.Rand) Step {
	if s, ok := p.(interface{ Start(r *rand.Rand) Step }); ok {
		return s.Start(r)
	}
	return Step{}
}

// The limits on an attempt whose [Step] has none. DefaultConnect allows for two name servers that each take
// 5 s, and for the fifth SYN, sent after 15 s (RFC 6298).
const (
	DefaultConnect   = 16 * time.Second
	DefaultHandshake = 30 * time.Second
)

// First returns p with another first wait, drawn from [0, spread). This wait decides how a fleet comes back after
// a deploy (RFC 6455, section 7.2.3). The History of p does not count it: N is one less, and Prev is 0 at p's own
// first wait. The first Step has no limits, so put [WithTimeouts] and [Limit] around First.
//
// A spread of 0 or less means no first wait. A nil p means [Default].
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

// Limit returns p with an end. It gives up after attempts waits, and instead of a wait that would end later
// than elapsed after the connection was lost or the start. A wait includes the server's Retry-After and the
// time to which [History.MinWait] raises it. Zero or less means no such limit. A nil p means [Default].
//
// Both limits start over with each outage. Because even an unstable session of 2 s shortens the outage, Limit
// may never give up where such sessions are frequent.
//
// With attempts 3 a lost connection is dialed three times; package retry, which does not wait before its first
// attempt, makes four.
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

// Gate paces the dials to each host, and holds all of them when the host asks one to wait, unless only a Caller
// is refused. It must be safe for concurrent use.
type Gate interface {
	// Acquire waits until a dial to host may begin, or until ctx is done. Unless it returns an error,
	// done is called exactly once, with the verdict on the dial: ClassOK if it succeeded, ClassStop if
	// that says nothing about the host.
	Acquire(ctx context.Context, host string) (done func(Verdict), err error)
}

// Uniform draws from [low, high); a negative bound counts as 0. If high is not above low it returns low
// and draws nothing.
func Uniform(r *rand.Rand, low, high time.Duration) time.Duration { return span.Uniform(r, low, high) }

// Rand returns the runtime's random numbers, which need no seed. Unlike other values of its type it is safe
// for concurrent use.
func Rand() *rand.Rand { return shared }

var shared = rand.New(global{})

type global struct{}

func (global) Uint64() uint64 { return rand.Uint64() }
