package schedule

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Dials decides when one connection is dialed: first, again, and beside a handshake that hangs. It does not
// dial, does not wait and does not look at the clock, so that a supervisor and a simulator can run the
// same code. It belongs to one goroutine. Make it with [NewDials], and do not copy it after Start.
//
// A handshake that is not answered may wait in a queue, which its server works off. Or it is lost for
// good, because a balancer took it for a server that is gone. The two look alike. A client that gives the
// handshake up makes a server with a queue work in vain and goes to the end of that queue, and a large
// enough herd of such clients never comes back. A client that holds on to a lost handshake is away for as
// long as it is patient. So a client does both: it keeps the place and asks again beside it, one dial at a
// time.
//
//	d.Start(now) // and, after a session, d.Ended
//	for {
//		switch a := d.Next(now); a.Do {
//		case schedule.DoDial: begin dial a.Which, with the limits of a.Attempt
//		case schedule.DoKeep: dial a.Which hangs: let it go on, and give its place at a gate back
//		case schedule.DoCut:  cancel dial a.Which, and report nothing more of it
//		case schedule.DoStop: no further dial
//		case schedule.DoWait: wait until a.At, or until something happens; report that
//		}
//	}
//
// Report events of a dial by Began, Connected, Failed, Answered and Withdrawn, and all others by Ended and Kick.
// After each of them call Next until it returns DoWait or DoStop.
//
// The rules of [Outage] hold, and these, for every policy. (A policy with a method Start(r *rand.Rand) Step
// is asked for the limits on the first dial of all; [backoff.First], [backoff.Limit] and [backoff.WithTimeouts]
// pass that on.)
//
//   - Before the first dial of all there is no wait but [DialOptions.StartSpread].
//   - A handshake that hangs is kept for up to [DialOptions.Keep], and the next dial begins beside it
//     after the policy's wait. There are never three dials. Of two handshakes that hang one is given
//     up, as [backoff.Step.Swap] says.
//   - A dial beside has found the backlog full if it was not connected for a second, or if the one before it
//     was not connected or was refused. [backoff.Step.SwapIfFull] is for such a dial, if the dial that is
//     kept was connected, and has not found the backlog full as well.
//   - With [DialOptions.OneConnection] a handshake that hangs is given up, and the next dial follows
//     after the policy's wait.
//   - Where the policy has no limit on the handshake, it hangs after 10 s, and is given up after
//     [backoff.DefaultHandshake] with OneConnection.
//   - Only a handshake that was begun can hang: a dial that is not answered at all fails at its limit
//     on connecting, and so does a dial that is answered 503.
//   - The time that a server told us to wait is waited for in full. Nothing cuts it short. A dial that
//     is under way by then goes on; a dial that waits at a gate can be taken back: see
//     [Dials.Withdrawn].
//   - A session that was ready for [DialOptions.StableAfter], and for as long as the wait before it,
//     ends the outage. A shorter session that was ready for [BriefSession] or more makes the outage
//     younger by [DialOptions.Credit]: see [Outage.Served].
//   - A session that was ready for less than the Max of [backoff.SlowWait] does not end a row of ClassSlow.
//   - A session that was ready for less than BriefSession earns nothing: the next wait is as long as if
//     its dial had failed. Neither does a session with [backoff.Verdict.NoCredit], unless it was ready
//     for an hour.
//   - From the eleventh wait of an outage on, 10 ms are added to a wait that is shorter than that, whatever
//     the policy says.
type Dials struct {
	o      *DialOptions
	r      *rand.Rand
	outage Outage
	waited time.Duration // the last wait, with what the server told us
	phase  phase
	gaveUp bool // the policy did

	*search // nil while the phase is up, because a session may last for long
}

// search is what a [Dials] knows besides while there is no session.
type search struct {
	due    time.Time    // the next dial; zero: not while a dial is under way
	hold   time.Time    // no dial before this, because the server said so
	step   backoff.Step // before the next dial, or before the one under way
	dials  [2]dial
	kept   int8 // the dial that is kept; -1: none is
	kicked bool // a kick cuts the next wait
	cutBy  bool // a kick has cut the present one
}

// DialOptions are what [Dials] of one kind have in common. They must not change once they
// are in use. Nil means the defaults.
type DialOptions struct {
	Policy        backoff.Policy // default [backoff.Default]
	OneConnection bool           // there is one dial at a time: a handshake that hangs is given up
	StartSpread   time.Duration  // the first dial of all waits for a draw from [0, StartSpread); default, and negative: no wait
	StableAfter   time.Duration  // a session that was ready for so long ends the outage; default 10 s; negative: BriefSession; a shorter one takes the place of BriefSession
	Credit        time.Duration  // a shorter session, but not a brief one, makes the outage so much younger; default 30 s; negative: 0
	Keep          time.Duration  // for how long a handshake is kept; default 6 h; negative: for ever
}

// WithDefaults returns a copy with the default in the place of each field that is zero.
func (o *DialOptions) WithDefaults() *DialOptions {
	var p DialOptions
	if o != nil {
		p = *o
	}
	if p.Policy == nil {
		p.Policy = backoff.Default()
	}
	if p.StableAfter = cmp.Or(p.StableAfter, 10*time.Second); p.StableAfter < 0 {
		p.StableAfter = BriefSession
	}
	p.Credit = span.Delay(p.Credit, 30*time.Second)
	p.Keep = span.Limit(p.Keep, 6*time.Hour)
	return &p
}

// BriefSession is how long a session must have been ready to count for anything, unless
// [DialOptions.StableAfter] is shorter. So a server that accepts connections and soon drops them sees the
// same growing waits as a server that refuses them.
const BriefSession = 2 * time.Second

// After freeWaits waits of an outage leastWait is added to each wait that is shorter, so that no policy, not
// even one that always returns 0, makes more than a hundred dials a second.
const (
	freeWaits = 10
	leastWait = 10 * time.Millisecond
)

// lateAfter is the time to connect from which on a dial has found the backlog of its server full. A full
// backlog drops the first SYN, and the second is sent after a second (RFC 6298).
const lateAfter = time.Second

// longSession is how long a session with [backoff.Verdict.NoCredit] must have been ready to end the outage
// all the same. Without this rule a [backoff.Limit] would add up failures that are days apart.
const longSession = time.Hour

// dial is one of the two.
type dial struct {
	state  dialState
	swap   bool          // if it hangs, it takes the place of the one that is kept
	ifFull bool          // it gets swap if it is late
	fresh  bool          // it is kept, and the next call of Next returns DoKeep
	late   bool          // it has found the backlog full
	since  time.Time     // when it began to connect, and then when its handshake began
	limit  time.Duration // how long that may last
}

// until returns when the handshake hangs or, if the dial is kept, when the handshake is given up.
func (x *dial) until() time.Time { return x.since.Add(x.limit) }

type dialState uint8

const (
	free dialState = iota
	connecting
	shaking // connected, and not answered yet
	cutting // to be cut by the next call of Next
)

type phase uint8

const (
	down    phase = iota // dialing or waiting
	up                   // a session
	stopped              // for good
)

const none = -1

// defaultHang is the time after which a handshake hangs, if the policy has no limit and
// the handshake can be kept.
const defaultHang = 10 * time.Second

// NewDials returns the state of a connection that was not started yet. It keeps o, in
// which no field may be zero that has a default: see [DialOptions.WithDefaults]. Nil means
// the defaults. Random numbers come from r; nil means [backoff.Rand].
func NewDials(o *DialOptions, r *rand.Rand) Dials {
	if o == nil {
		o = o.WithDefaults()
	}
	if r == nil {
		r = backoff.Rand()
	}
	return Dials{o: o, r: r, search: &search{kept: none}}
}

// Use replaces the options, while no dial is under way and nothing is due. It keeps o as
// [NewDials] does.
func (d *Dials) Use(o *DialOptions) { d.o = o }

// Start is the start of the connection: the first dial of all may begin. A policy that has limits for it has a
// method Start, and one around another passes it on.
func (d *Dials) Start(now time.Time) {
	d.outage.Begin(now)
	if p, ok := d.o.Policy.(interface {
		Start(r *rand.Rand) backoff.Step
	}); ok {
		d.step = p.Start(d.r)
	}
	d.step.Wait = span.Uniform(d.r, 0, d.o.StartSpread)
	d.due = now.Add(d.step.Wait)
}

// Began reports that a dial begins only now, because it has waited at a gate.
func (d *Dials) Began(which int, now time.Time) {
	if d.search != nil {
		d.dials[which].since = now
	}
}

// Connected reports that the TCP connection of a dial exists, so that its handshake
// begins. Before it the dial cannot hang.
func (d *Dials) Connected(which int, now time.Time) {
	if d.search == nil || d.dials[which].state != connecting {
		return
	}
	x := &d.dials[which]
	x.late = now.Sub(x.since) >= lateAfter
	x.state, x.since = shaking, now
	if h := d.outage.hang; h != nil {
		x.late = x.late || h.full
		h.full = false
	}
	switch {
	case which == int(d.kept):
		x.limit = d.o.Keep
	case x.ifFull && x.late && d.kept != none && d.dials[d.kept].state == shaking && !d.dials[d.kept].late:
		x.swap = true
	}
}

// Failed reports that a dial has failed.
func (d *Dials) Failed(which int, v backoff.Verdict, now time.Time) {
	if h := d.outage.hang; h != nil && (d.dials[which].state == connecting || v.Refused) {
		h.full = true
	}
	d.dials[which].state = free
	if which == int(d.kept) || d.o.OneConnection {
		d.release()
	}
	d.outage.refused = d.outage.refused || v.Refused
	switch other := d.underWay(); {
	case v.Class == backoff.ClassStop, !other && d.due.IsZero(), !other && v.RetryAfter > 0:
		d.ask(v, false, now)
	default: // the other one is alone now, or the next has its time already
		d.holdFor(v.Bounded().RetryAfter, now)
	}
}

// Withdrawn reports that a dial was taken back at a gate, before it has begun. It does not count as a try. If
// another dial is under way, because the server has told that one to wait, call Failed next for the other
// one, which decides when the next dial begins. Otherwise the next dial may begin at once.
func (d *Dials) Withdrawn(which int, now time.Time) {
	if which == int(d.kept) {
		d.release()
	}
	d.dials[which].state = free
	d.outage.tries-- // it has not begun
	if d.dials[1-which].state == free {
		d.due = now
	}
}

// holdFor prevents dials until the time that the server told us to wait is over.
func (d *Dials) holdFor(wait time.Duration, now time.Time) {
	if hold := now.Add(wait); hold.After(d.hold) {
		d.hold = hold
	}
	if !d.due.IsZero() && d.due.Before(d.hold) {
		d.due = d.hold
	}
}

// Answered reports that the handshake of a dial is complete and its session begins. Next
// cuts the other dial, if there is one.
func (d *Dials) Answered(which int, now time.Time) {
	d.dials[which].state = free
	d.release()
	d.phase = up
	if other := &d.dials[1-which]; other.state != free {
		other.state = cutting
		return
	}
	d.forget()
}

// forget forgets the search, which is over.
func (d *Dials) forget() {
	d.search = nil
	d.outage.last = nil // which no later History needs
}

// Ended reports that the session has ended, which was ready for so long, or never if that
// is negative. It reports whether the session was stable, so that the next outage begins.
func (d *Dials) Ended(v backoff.Verdict, ready time.Duration, now time.Time) (stable bool) {
	d.phase = down
	if d.search == nil {
		d.search = &search{kept: none}
	}
	slows, counts := d.outage.slows, !v.NoCredit || ready >= longSession
	if slows > 0 && counts && ready >= slowWait(d.o.Policy).Max {
		slows = 0
	}
	switch stable = ready >= max(d.o.StableAfter, d.waited) && counts; {
	case stable:
		d.outage.Stable(now)
	case ready < 0:
	case v.NoCredit || ready < min(d.o.StableAfter, BriefSession):
		d.outage.began = d.outage.began.Add(ready)
	default:
		d.outage.Served(d.o.Credit, now)
	}
	d.outage.slows = slows // also after a stable session, so that a server which refuses clients late sees growing waits
	d.ask(v, false, now)
	return stable
}

// Kick cuts the present wait short, but does nothing while we wait for the time that a server told us. A
// dial that is under way alone is kept as if it hung, and another begins beside it at once. If there are
// two dials, or with [DialOptions.OneConnection], the wait after the dial is cut. Kick reports whether it
// does any of this.
func (d *Dials) Kick(now time.Time) bool {
	switch {
	case d.phase != down:
		return false
	case d.underWay():
		d.kicked = true
	case d.due.After(now) && !d.hold.After(now):
		d.due, d.cutBy = now, true
	default:
		return false
	}
	return true
}

// History returns what the policy got last. Its Verdict is the one that counts, after the
// rules of [Outage.Next]. During a session it is empty.
func (d *Dials) History() backoff.History { return d.outage.History() }

// Due returns when the next dial begins, the zero time if that is not known yet.
func (d *Dials) Due() time.Time {
	if d.search == nil {
		return time.Time{}
	}
	return d.due
}

// Attempts returns how many dials have begun since the last stable session, or since the
// start.
func (d *Dials) Attempts() int { return int(d.outage.tries) }

// Stopped reports whether Next returns DoStop.
func (d *Dials) Stopped() bool { return d.phase == stopped }

// GaveUp reports, after a DoStop, whether it was the policy that gave up.
func (d *Dials) GaveUp() bool { return d.gaveUp }

// Action is what to do next.
type Action struct {
	Do      Do              // the kind
	Which   int             // 0 or 1, with DoDial, DoKeep and DoCut
	Attempt backoff.Attempt // with DoDial; its Connected is nil
	At      time.Time       // when to call Next again, with DoWait; zero means after the next event

	Kicked bool // because of a kick: with DoKeep not because the handshake hangs, with DoDial before the wait was over
}

// Do is the kind of an [Action].
type Do uint8

// The kinds.
const (
	DoWait Do = iota // until Action.At
	DoDial           // begin the dial
	DoKeep           // keep the dial, which hangs; another will begin concurrently
	DoCut            // cancel the dial
	DoStop           // the policy gave up, or a verdict was ClassStop
)

// Next returns what to do now.
func (d *Dials) Next(now time.Time) Action {
	if d.search == nil {
		return Action{}
	}
	for i := range d.dials {
		switch x := &d.dials[i]; {
		case x.state == cutting:
			d.forget()
			return Action{Do: DoCut, Which: i}
		case x.state != free && d.phase == stopped:
			return d.cut(i)
		}
	}
	if d.phase == stopped {
		return Action{Do: DoStop}
	}
	if d.kept != none && d.dials[d.kept].fresh {
		d.dials[d.kept].fresh = false
		return Action{Do: DoKeep, Which: int(d.kept)}
	}
	at := d.due // zero while a dial is under way
	for i := range d.dials {
		x := &d.dials[i]
		if x.state == free {
			continue
		}
		kick := d.kicked && d.kept == none && !d.o.OneConnection
		if kick || x.state == shaking && !now.Before(x.until()) {
			return d.hangs(i, now)
		}
		if x.state == shaking && (at.IsZero() || x.until().Before(at)) {
			at = x.until()
		}
	}
	if !d.due.IsZero() && !now.Before(d.due) {
		return d.begin(now)
	}
	return Action{At: at}
}

// begin begins a dial.
func (d *Dials) begin(now time.Time) Action {
	which := 0
	if d.kept == 0 {
		which = 1
	}
	if h := d.outage.hang; h != nil {
		h.beside++
	}
	a := Action{Do: DoDial, Which: which, Attempt: d.outage.Attempt(d.step), Kicked: d.cutBy}
	d.due, d.cutBy = time.Time{}, false
	limit := defaultHang
	if d.o.OneConnection {
		limit = backoff.DefaultHandshake
	}
	d.dials[which] = dial{
		state:  connecting,
		swap:   d.step.Swap,
		ifFull: d.step.SwapIfFull,
		since:  now,
		limit:  span.Positive(d.step.Handshake, limit),
	}
	return a
}

// hangs decides what becomes of a dial whose handshake hangs, or that a kick takes for one
// that does.
func (d *Dials) hangs(which int, now time.Time) (a Action) {
	x := &d.dials[which]
	switch {
	case which == int(d.kept): // for as long as it may be
		a = d.cut(which)
		d.release()
		if d.underWay() || !d.due.IsZero() {
			return a
		}
	case d.o.OneConnection:
		if d.outage.hang == nil {
			d.outage.hang = &hang{began: x.since}
		}
		a = d.cut(which)
	case d.kept == none:
		a = Action{Do: DoKeep, Which: which, Kicked: d.kicked}
		d.keep(which)
		d.outage.hang = &hang{began: now}
		if x.state == shaking {
			d.outage.hang.began = x.since
		}
		if d.kicked { // nothing has failed
			d.kicked, d.due = false, now
			if d.hold.After(now) {
				d.due = d.hold
			}
			d.step.Wait, d.step.Swap = 0, false
			return a
		}
	case x.swap:
		a = d.cut(int(d.kept))
		d.keep(which)
		x.fresh = true
	default:
		a = d.cut(which)
	}
	d.ask(backoff.Verdict{Class: backoff.ClassOverload}, true, now)
	return a
}

// keep makes a dial the one that is kept.
func (d *Dials) keep(which int) {
	d.kept = int8(which)
	if x := &d.dials[which]; x.state == shaking {
		x.limit = d.o.Keep
	}
}

// cut ends a dial.
func (d *Dials) cut(which int) Action {
	d.dials[which].state = free
	return Action{Do: DoCut, Which: which}
}

// release ends the hang.
func (d *Dials) release() {
	d.kept = none
	d.outage.hang = nil
}

// underWay reports whether there is a dial that is not kept.
func (d *Dials) underWay() bool {
	for i := range d.dials {
		if s := d.dials[i].state; i != int(d.kept) && (s == connecting || s == shaking) {
			return true
		}
	}
	return false
}

// ask gets the next step from the policy.
func (d *Dials) ask(v backoff.Verdict, hung bool, now time.Time) {
	d.outage.hung = hung
	step, ok := d.outage.Next(d.o.Policy, v, now, d.r)
	if !ok {
		d.phase, d.gaveUp = stopped, d.outage.History().Verdict.Class != backoff.ClassStop
		return
	}
	if d.outage.waits > freeWaits && step.Wait < leastWait {
		step.Wait += leastWait // and not leastWait, so that draws stay different
	}
	d.step, d.due = step, now
	d.holdFor(d.outage.History().Verdict.RetryAfter, now)
	if d.cutBy = d.kicked && !d.hold.After(now); !d.cutBy {
		d.due = d.due.Add(step.Wait)
	}
	d.kicked = false
	d.waited = d.due.Sub(now)
}
