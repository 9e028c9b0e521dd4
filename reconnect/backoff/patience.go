package backoff

import (
	"math/rand/v2"
	"time"
)

// Patience is a limit on a part of a try that grows with the number of
// overloads since the last stable session: min(Cap, Base*Factor^Overloads), or,
// with a Share, with the time that the outage has lasted once there was an
// overload: min(Cap, max(Base, Share*Elapsed)). The second cannot run away: nobody
// is held by one try for longer than Share times as long as the outage has lasted
// anyway. Whoever gives up a handshake that waits in a server's backlog, and comes
// again, has made the server work in vain; with a fixed limit there is a herd
// size from which a server never recovers.
type Patience struct {
	Base   time.Duration // without overloads; default DefaultConnect or DefaultHandshake; negative: leave the limit to the policy
	Factor float64       // growth per overload; default 2; below 1: no growth
	Share  float64       // of the outage so far, instead of growth by Factor; default: none
	Cap    time.Duration // the longest; default 6 times Base for connecting, 10 times for the handshake; negative: none
}

// Patient is p with limits on connecting and on the handshake that follows. A
// nil p is [Default].
func Patient(p Policy, connect, handshake Patience) Policy {
	return &patient{
		policy:    orDefault(p),
		connect:   connect.withDefaults(DefaultConnect, 6),
		handshake: handshake.withDefaults(DefaultHandshake, 10),
	}
}

type patient struct {
	policy             Policy
	connect, handshake Patience
}

func (p *patient) Next(a Attempt, r *rand.Rand) (Step, bool) {
	s, ok := p.policy.Next(a, r)
	if p.connect.Base > 0 {
		s.Connect = p.connect.after(a)
	}
	if p.handshake.Base > 0 {
		s.Handshake = p.handshake.after(a)
	}
	return s, ok
}

func (p *Patience) after(a Attempt) time.Duration {
	switch {
	case a.Overloads <= 0:
		return p.Base
	case p.Share > 0:
		return min(p.Cap, max(p.Base, scaled(a.Elapsed, p.Share)))
	}
	return Grow(p.Base, p.Factor, a.Overloads, p.Cap)
}

func (p Patience) withDefaults(base, times time.Duration) Patience {
	if p.Base == 0 {
		p.Base = base
	}
	p.Factor = orUsual(p.Factor, 2)
	switch {
	case p.Cap == 0 && p.Base < longest/times:
		p.Cap = times * p.Base
	case p.Cap <= 0 || p.Cap > longest:
		p.Cap = longest
	}
	p.Base = min(p.Base, p.Cap)
	return p
}
