package backoff

import (
	"math/rand/v2"
	"time"
)

// Patience is a limit on a part of a try. It grows with the number of overloads since the
// last stable session: min(Cap, Base*Factor^Overloads). With a Share it grows with the
// time that the outage has lasted, from the first overload on: min(Cap, max(Base,
// Share*Elapsed)). That cannot run away, because one try never takes longer than Share
// times as long as the outage has lasted anyway.
//
// It grows because a client that gives up a handshake which waits in a server's backlog,
// and comes again, makes the server work in vain. With a fixed limit there is a size of
// herd from which a server never recovers.
type Patience struct {
	Base   time.Duration // the limit without overloads; default DefaultConnect or DefaultHandshake; negative: leave the limit to the policy
	Factor float64       // growth per overload; default 2; below 1: no growth
	Share  float64       // share of the outage so far, instead of growth by Factor; default, and negative: none
	Cap    time.Duration // the longest limit; default 6 times Base for connecting, 10 times for the handshake; negative: none
}

// Patient returns p with limits on connecting and on the handshake that follows. A nil p
// means [Default].
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
