package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Timeout is a limit on a part of an attempt. It grows with the number of overloads since the last stable
// session: min(Cap, Base*Factor^Overloads). With a Share it grows with the age of the outage, from the first
// overload on: min(Cap, max(Base, Share*Elapsed)).
//
// It grows because with a fixed limit a server never recovers from a large enough herd.
type Timeout struct {
	// Base is the limit without overloads. Default: DefaultConnect or DefaultHandshake. Negative: the policy's.
	Base time.Duration

	// Factor is the growth per overload. Default: 2. Below 1: no growth.
	Factor float64

	// Share is the share of the outage so far, instead of Factor. Default and negative mean none.
	Share float64

	// Cap is the maximum. Default: 6 times Base for connecting, 10 times for the handshake. Negative: none.
	Cap time.Duration
}

// WithTimeouts returns p with limits on connecting and on the handshake after it. A nil p means
// [Default].
func WithTimeouts(p Policy, connect, handshake Timeout) Policy {
	return &timeouts{
		policy:    orDefault(p),
		connect:   connect.withDefaults(DefaultConnect, 6),
		handshake: handshake.withDefaults(DefaultHandshake, 10),
	}
}

type timeouts struct {
	policy             Policy
	connect, handshake Timeout
}

func (p *timeouts) Next(a History, r *rand.Rand) (Step, bool) {
	s, ok := p.policy.Next(a, r)
	return p.limited(s, a), ok
}

func (p *timeouts) Start(r *rand.Rand) Step {
	return p.limited(start(p.policy, r), History{})
}

func (p *timeouts) SlowWait() SlowWait { return slowWait(p.policy) }

// limited returns s with the limits after a.
func (p *timeouts) limited(s Step, a History) Step {
	if p.connect.Base > 0 {
		s.Connect = p.connect.after(a)
	}
	if p.handshake.Base > 0 {
		s.Handshake = p.handshake.after(a)
	}
	return s
}

func (p *Timeout) after(a History) time.Duration {
	switch {
	case a.Overloads <= 0:
		return p.Base
	case p.Share > 0:
		return min(p.Cap, max(p.Base, span.Scaled(a.Elapsed, p.Share)))
	}
	return span.Grow(p.Base, p.Factor, a.Overloads, p.Cap)
}

func (p Timeout) withDefaults(base, times time.Duration) Timeout {
	if p.Base == 0 {
		p.Base = base
	}
	p.Factor = span.OrUsual(p.Factor, 2)
	switch {
	case p.Cap == 0 && p.Base < span.Longest/times:
		p.Cap = times * p.Base
	case p.Cap <= 0 || p.Cap > span.Longest:
		p.Cap = span.Longest
	}
	p.Base = min(p.Base, p.Cap)
	return p
}
