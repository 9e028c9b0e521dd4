package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Paced is a sketch of a [backoff.Policy] whose waits go by how long the outage has
// lasted, not by how often was tried:
//
//   - The first wait is drawn from [0, Spread).
//   - Who was refused in the first half of it dials once more in the second half,
//     drawn from [Spread/2, Spread) since the loss. (Not after an overload.)
//   - From then on the wait is drawn from [d/2, d), where
//     d = min(Cap, max(Base, Share*Elapsed)), with OverloadCap in the place of Cap
//     after an overload.
//   - If the server told us to wait, that comes on top, and so it counts; and all who
//     were told the same are spread over as much again, so that they come neither
//     together nor with pauses between: the wait is drawn from [0, d), with
//     d = min(Cap, max(Base, Share*Elapsed - RetryAfter, RetryAfter)).
//
// So nobody is away for much longer than 1+Share times the outage, all keep dialling
// about every Base while it is young, and a herd that a server turns away thins out
// its dials in proportion to the time that it takes. Half of d is certain since
// what decides when the last of a herd is back is the longest wait, and what
// decides how many dials that costs is the mean one.
type Paced struct {
	Spread      time.Duration // the range of the first wait; default 2 s
	Base        time.Duration // the least d; default 2.4 s
	Share       float64       // of the outage; default 0.5
	Cap         time.Duration // the greatest d; default 30 s
	OverloadCap time.Duration // the greatest d after an overload; default 60 s
}

// Next returns the wait alone and never gives up.
func (p *Paced) Next(a backoff.Attempt, r *rand.Rand) (backoff.Step, bool) {
	spread := orDefault(p.Spread, 2*time.Second)
	overload := a.Verdict.Class == backoff.ClassOverload
	switch {
	case a.N <= 0:
		return backoff.Step{Wait: backoff.Uniform(r, 0, spread)}, true
	case a.Elapsed < spread/2 && !overload:
		return backoff.Step{Wait: backoff.Uniform(r, spread/2-a.Elapsed, spread-a.Elapsed)}, true
	}
	limit := orDefault(p.Cap, 30*time.Second)
	if overload {
		limit = orDefault(p.OverloadCap, time.Minute)
	}
	share := p.Share
	if share == 0 {
		share = 0.5
	}
	told := a.Verdict.RetryAfter
	d := min(limit, max(orDefault(p.Base, 2400*time.Millisecond), scaled(a.Elapsed, share)-told, told))
	if told > 0 {
		return backoff.Step{Wait: backoff.Uniform(r, 0, d)}, true
	}
	return backoff.Step{Wait: backoff.Uniform(r, d/2, d)}, true
}

// Lasting is a sketch of limits on a try that go by how long the outage has lasted:
// Base before the first overload, then min(Cap, max(Base, Share*Elapsed)).
// [backoff.Patience] counts overloads instead, so that an hour of unanswered SYNs
// leads to limits of centuries unless there is a Cap; and with a Cap there is a herd
// that never recovers, of more than Cap*C clients at an unbounded queue.
type Lasting struct {
	Base  time.Duration // default that of backoff
	Share float64       // of the outage
	Cap   time.Duration // default: none
}

// Enduring is p with limits on connecting and on the handshake.
func Enduring(p backoff.Policy, connect, handshake Lasting) backoff.Policy {
	connect.Base = orDefault(connect.Base, backoff.DefaultConnect)
	handshake.Base = orDefault(handshake.Base, backoff.DefaultHandshake)
	return &enduring{p, connect, handshake}
}

type enduring struct {
	policy             backoff.Policy
	connect, handshake Lasting
}

// Next is the policy's, with limits.
func (e *enduring) Next(a backoff.Attempt, r *rand.Rand) (backoff.Step, bool) {
	s, ok := e.policy.Next(a, r)
	s.Connect, s.Handshake = e.connect.after(a), e.handshake.after(a)
	return s, ok
}

func (l *Lasting) after(a backoff.Attempt) time.Duration {
	if a.Overloads <= 0 {
		return l.Base
	}
	d := max(l.Base, scaled(a.Elapsed, l.Share))
	if l.Cap > 0 {
		d = min(d, l.Cap)
	}
	return d
}

func scaled(d time.Duration, by float64) time.Duration {
	return time.Duration(min(float64(d)*by, float64(1<<61)))
}

// Proposed is what the search has found: see DEFAULTS.md.
func Proposed() backoff.Policy {
	return Enduring(&Paced{}, Lasting{Share: 0.25, Cap: time.Minute}, Lasting{Share: 4})
}
