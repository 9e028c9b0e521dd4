package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Adaptive is a [Policy] for one client of a server and for a million.
//
//   - The first wait is random in [0, Spread). A client refused in the first half of Spread dials again in the
//     second, or up to a tenth of that half later.
//   - A later wait is random in [d/2, d), where d is Share times the age of the outage, at least Base and at most
//     Cap, or OverloadCap after an overload.
//   - A Retry-After is followed by a random wait in [0, d), where d is RetryAfterShare times the total time for
//     which the server has asked to wait, at least Base, and at most OverloadCap or this Retry-After if longer.
//   - A handshake hangs if unanswered after Hang, or HangShare times the age of the hang if longer. The last
//     sixth is jittered: 8.3 to 10 s by default. Package reconnect keeps it and dials again concurrently,
//     without a wait. If that hangs too, it is given up and the next begins.
//   - The first concurrent dial replaces the kept handshake if it hangs. This happens once per hang, and not if a
//     dial was refused in this outage.
//   - A concurrent dial finds the server's backlog full if it needs a second to connect, or if the previous one
//     was not connected or was refused. If it hangs it replaces the kept handshake unless that one found it
//     full too.
//   - After a refusal or a 503 during a hang, d is HangShare times the age of the hang, within its other
//     bounds.
//
// A herd may take hours to come back if a hang of 10 s or more has lost all of an unbounded queue, and the server
// needs more than about 20 s for all clients. A gate per process with many connections helps, as does HangShare 1,
// with which a lone client stays away for minutes after a hang of minutes.
//
// The zero value has the defaults: see bench/DEFAULTS.md in the repository.
type Adaptive struct {
	Spread          time.Duration // range of the first wait; default 2 s; negative means no first wait
	Base            time.Duration // minimum d; default 2.4 s; negative means 0
	Share           float64       // of the age of the outage, for d; default 0.5; negative means 0
	Cap             time.Duration // maximum d; default 10 s; negative means none
	OverloadCap     time.Duration // maximum d after an overload; default 15 s; negative means none
	RetryAfterShare float64       // of the time that the server has asked to wait; default 0.25; negative means 0
	Connect         time.Duration // limit on connecting; default DefaultConnect; negative means none
	Hang            time.Duration // time after which a handshake hangs; default 10 s; negative means never
	HangShare       float64       // of the age of the hang, for concurrent handshakes; default 0.05; negative means 0
}

// withDefaults returns p with defaults for zeros, and with 0 or no limit for negative numbers.
func (p Adaptive) withDefaults() Adaptive {
	p.Spread = span.Delay(p.Spread, 2*time.Second)
	p.Base = span.Delay(p.Base, 2400*time.Millisecond)
	p.Cap = span.Limit(p.Cap, 10*time.Second)
	p.OverloadCap = span.Limit(p.OverloadCap, 15*time.Second)
	p.Connect = span.Limit(p.Connect, DefaultConnect)
	p.Hang = span.Limit(p.Hang, 10*time.Second)
	p.Share = span.OrUsual(p.Share, 0.5)
	p.RetryAfterShare = span.OrUsual(p.RetryAfterShare, 0.25)
	p.HangShare = span.OrUsual(p.HangShare, 0.05)
	return p
}

// Next returns the wait and the limits. It never gives up.
func (p *Adaptive) Next(a History, r *rand.Rand) (Step, bool) {
	q := p.withDefaults()
	hang := max(q.Hang, span.Scaled(a.Hang, q.HangShare))
	return Step{
		Wait:       q.wait(&a, r),
		Connect:    q.Connect,
		Handshake:  span.Uniform(r, hang-hang/6, hang),
		Swap:       a.Hang > 0 && a.DialsBeside == 0 && !a.Refused,
		SwapIfFull: a.Hang > 0,
	}, true
}

// Start returns the limits on the first dial.
func (p *Adaptive) Start(r *rand.Rand) Step {
	s, _ := p.Next(History{}, r)
	s.Wait = 0
	return s
}

// wait draws the wait, without what the server told us.
func (p *Adaptive) wait(a *History, r *rand.Rand) time.Duration {
	v, elapsed := &a.Verdict, max(a.Elapsed, 0)
	overload := v.Class == ClassOverload
	most := p.Cap
	if overload {
		most = p.OverloadCap
	}
	switch half := p.Spread / 2; {
	case v.RetryAfter > 0:
		asked := min(span.Scaled(a.RetryAfterFor, p.RetryAfterShare)+span.Scaled(v.RetryAfter, p.RetryAfterShare), span.Longest)
		return span.Uniform(r, 0, max(p.Base, min(asked, max(p.OverloadCap, v.RetryAfter))))
	case a.Hung:
		return 0
	case a.N <= 0:
		return span.Uniform(r, 0, p.Spread)
	case elapsed < half && !overload:
		return span.Uniform(r, half-elapsed, p.Spread+half/10-elapsed)
	}
	d := span.Scaled(elapsed, p.Share)
	if a.Hang > 0 {
		d = span.Scaled(a.Hang, p.HangShare)
	}
	d = min(max(d, p.Base), max(most, p.Base))
	return span.Uniform(r, d/2, d)
}

// Default returns the default policy, an [Adaptive] with its defaults, which never gives up. Every call returns
// the same value.
func Default() Policy { return standard }

var standard Policy = &Adaptive{}

func orDefault(p Policy) Policy {
	if p == nil {
		return standard
	}
	return p
}
