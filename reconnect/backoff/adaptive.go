package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
)

// Adaptive is a [Policy] for one client that wants to be back as soon as its server is, and for a
// million clients that must not keep the server from coming back.
//
//   - The first wait is random in [0, Spread). A client that is refused in the first half of Spread
//     dials once more in the second half, or up to a tenth of that half later.
//   - A later wait is random in [d/2, d). d is Share times the age of the outage, at least Base and at
//     most Cap, or at most OverloadCap after an overload (a timeout, 429, 503).
//   - A server that tells the client to wait gets that wait, and a random one in [0, d) after it. d is
//     RetryAfterShare times the time for which the server has told the client to wait, the present time
//     included. d is at least Base, and at most OverloadCap or the present time if that is longer.
//   - A handshake hangs when it was not answered for Hang, or for HangShare times the age of the hang if
//     that is longer. The last sixth of the time is jittered: by default 8.3 to 10 s. Package
//     reconnect keeps the handshake, and begins the next dial beside it without a wait. If that dial hangs as
//     well it is given up, and the next begins.
//   - The first dial beside a kept handshake takes its place if it hangs as well, because a short hang
//     may have swallowed every first handshake of a herd. This happens once per hang, and not if a dial
//     was refused in this outage: then the server was restarted, and a queue is likelier than a hang.
//   - A dial beside finds the backlog of the server full if it needs a second to connect, or if the one
//     before it was not connected or was refused. If it hangs it takes the place of the kept one, unless that
//     has found the backlog full as well: a backlog that has filled up since then shows that the server may
//     be back, and that the kept place may be lost.
//   - After a refusal or a 503 beside a handshake that hangs, d is HangShare times the age of the hang,
//     within the other bounds of d.
//
// One kind of herd may take hours to come back: a server whose queue has no bound has lost every place in
// a hang of 10 s or more, and needs more than about 20 s for all its clients. Its queue fills with
// handshakes that their clients have given up. A backlog cures that if it fills up within the time that the
// server needs for all its clients: then they are back in at most 2.2 times that time. A longer one is as
// none: after such a hang the herd takes 5 to 17 times as long as the server needs, and after a restart 3 to
// 10 times, if the server needs minutes. If two such hangs follow each other, a backlog of more than 8 s
// does not help. A gate for each process with many connections cures it. HangShare 1 does too, but a client
// that is alone is then away for minutes after a hang of minutes.
//
// The zero value has the defaults. bench/DEFAULTS.md in the repository has the effect of each.
type Adaptive struct {
	Spread          time.Duration // range of the first wait; default 2 s; negative: no first wait
	Base            time.Duration // the least d; default 2.4 s; negative: 0
	Share           float64       // of the outage's age, for d; default 0.5; negative: 0
	Cap             time.Duration // the greatest d; default 10 s; negative: none
	OverloadCap     time.Duration // the greatest d after an overload; default 15 s; negative: none
	RetryAfterShare float64       // of the time for which the server has told us to wait; default 0.25; negative: 0
	Connect         time.Duration // the limit on connecting; default DefaultConnect; negative: none
	Hang            time.Duration // the time after which a handshake hangs; default 10 s; negative: it never does
	HangShare       float64       // of the hang's age, for the time after which a further handshake hangs; default 0.05; negative: 0
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

// Start returns the limits on the first dial of all.
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

// Default returns the policy that is used where none is given: an [Adaptive] with its defaults. It never
// gives up, and allows 16 s to connect. Every call returns the same value.
//
// The numbers were chosen by simulation: bench/DEFAULTS.md in the repository has the tables, and the
// command that makes them again.
func Default() Policy { return standard }

var standard Policy = &Adaptive{}

func orDefault(p Policy) Policy {
	if p == nil {
		return standard
	}
	return p
}
