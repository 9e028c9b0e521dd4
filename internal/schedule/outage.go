package schedule

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// RefreshSpread: the wait after [backoff.ClassRefresh] is a draw from [0, RefreshSpread), so that clients whose
// credentials expired at one instant do not come together.
const RefreshSpread = time.Second

// Outage counts what a [backoff.Policy] decides by while something is down, and has the rules that no policy
// can change. It does not wait and does not look at the clock, so that a simulator may use it too:
//
//	step, ok := outage.Next(policy, verdict, time.Now(), r)
//	if !ok { give up }
//	wait outage.History().Verdict.RetryAfter, which nothing may cut short; then step.Wait
//	try again, with backoff.WithAttempt(ctx, outage.Attempt(step))
//
// In the zero value nothing has failed yet. An Outage belongs to one goroutine, and must not be copied
// after the first Next.
type Outage struct {
	last      *backoff.History // as the policy got it last; nil: it got none, or it was forgotten
	drawn     time.Duration    // the last wait, as the policy drew it
	began     time.Time
	toldSince time.Time // when the server told us to wait first, if it has done so after each try since; zero: it has not
	hang      *hang     // since when handshakes hang; nil: none does
	waits     int32
	tries     int32
	overloads int32
	slows     int32         // how many verdicts in a row were ClassSlow, by the rules of Next
	class     backoff.Class // of the last verdict, as it was given
	renew     bool          // the credentials were refused, and no try since has shown what the new ones are worth
	refused   bool          // a dial was, in this outage; only a [Dials] knows
	hung      bool          // the verdict is on a handshake that hangs; likewise
}

// Begin sets the time at which the outage began. Without it that is the time of the first
// Next.
func (o *Outage) Begin(now time.Time) { o.began = now }

// Stable ends the outage, because there was a stable session. That has ended now, so the
// next outage begins.
func (o *Outage) Stable(now time.Time) { *o = Outage{began: now} }

// Served makes the outage younger by d, because there was a session that was not stable, but long enough to
// count (see [BriefSession]). An outage that is not older than d is over, and the next one begins. The
// rest of d then delays the next outage: its age stays 0 for so long.
func (o *Outage) Served(d time.Duration, now time.Time) {
	if o.began.After(now) {
		o.began = now
	}
	if o.began = o.began.Add(d); o.began.Before(now) {
		return
	}
	o.waits, o.drawn, o.overloads, o.hang, o.refused, o.hung = 0, 0, 0, nil, false, false
}

// Next takes the verdict on a try or session that has just ended, and returns the next step of p; false
// means: give up. These rules hold for every p (nil means [backoff.Default]):
//
//   - After ClassStop it gives up.
//   - After ClassRefresh the wait is a draw from [0, [RefreshSpread]), whatever p says. A second
//     ClassRefresh in a row counts as ClassSlow.
//   - A ClassSlow that is Lenient counts as ClassRetry, unless the verdict before it was ClassSlow too. A
//     stable session ends the row.
//   - After ClassSlow the wait is at least the [backoff.SlowWait] of p, or the default one if p has none.
//   - A wait or a limit below 0 is 0.
//
// The Step does not contain the verdict's RetryAfter. A nil r means [backoff.Rand].
func (o *Outage) Next(p backoff.Policy, v backoff.Verdict, now time.Time, r *rand.Rand) (backoff.Step, bool) {
	if r == nil {
		r = backoff.Rand()
	}
	o.note(v, now)
	switch {
	case o.last.Verdict.Class == backoff.ClassStop:
		return backoff.Step{}, false
	case o.last.Verdict.Class == backoff.ClassSlow:
		o.last.MinWait = drawSlow(slowWait(p), int(o.slows), r)
		o.slows++
	case !o.hung:
		o.slows = 0
	}
	if p == nil {
		p = backoff.Default()
	}
	s, ok := p.Next(*o.last, r)
	if !ok {
		return backoff.Step{}, false
	}
	if o.last.Verdict.Class == backoff.ClassRefresh {
		s.Wait = span.Uniform(r, 0, RefreshSpread)
	}
	o.waits++
	o.drawn = min(max(s.Wait, 0), span.Longest)
	return backoff.Step{
		Wait:       max(o.drawn, o.last.MinWait),
		Connect:    max(s.Connect, 0),
		Handshake:  max(s.Handshake, 0),
		Swap:       s.Swap,
		SwapIfFull: s.SwapIfFull,
	}, true
}

// note sets the History that the policy gets.
func (o *Outage) note(v backoff.Verdict, now time.Time) {
	if o.began.IsZero() {
		o.began = now
	}
	again := v.Class == o.class
	o.class = v.Class
	o.renew = v.Class == backoff.ClassRefresh || o.renew && o.hung
	switch {
	case v.Class == backoff.ClassRefresh && again:
		v.Class = backoff.ClassSlow
	case v.Class == backoff.ClassSlow && v.Lenient && !again:
		v.Class = backoff.ClassRetry
	}
	if v.Class == backoff.ClassOverload {
		o.overloads++
	}
	var toldFor time.Duration
	switch {
	case v.RetryAfter <= 0:
		o.toldSince = time.Time{}
	case o.toldSince.IsZero():
		o.toldSince = now
	default:
		toldFor = now.Sub(o.toldSince)
	}
	if o.last == nil {
		o.last = new(backoff.History)
	}
	*o.last = backoff.History{
		N:             int(o.waits),
		Overloads:     int(o.overloads),
		Prev:          o.drawn,
		Elapsed:       max(now.Sub(o.began), 0),
		Verdict:       v.Bounded(),
		RetryAfterFor: toldFor,
		Refused:       o.refused,
		Hung:          o.hung,
	}
	if o.hang != nil {
		o.last.Hang, o.last.DialsBeside = max(now.Sub(o.hang.began), 1), o.hang.beside
	}
}

// History returns the History that the policy got last. Its Verdict is the one that
// counts, after the rules of [Outage.Next].
func (o *Outage) History() backoff.History {
	if o.last == nil {
		return backoff.History{}
	}
	return *o.last
}

// Attempt returns the [backoff.Attempt] for the dial that follows s; pass a zero Step if the dial follows
// no wait. It counts, so call it once per dial.
func (o *Outage) Attempt(s backoff.Step) backoff.Attempt {
	o.tries++
	return backoff.Attempt{Number: int(o.tries), Connect: s.Connect, Handshake: s.Handshake, Refresh: o.renew}
}

// hang is what an [Outage] knows of the handshakes of a [Dials] that hang.
type hang struct {
	began  time.Time // when the first of them did
	full   bool      // the last dial was not connected, or was refused
	beside int       // dials that have begun beside the one that hangs
}

// slowGrowth is the factor by which each wait after a ClassSlow in a row grows.
const slowGrowth = 1.2

// slowWait returns the wait of p after ClassSlow, with the defaults.
func slowWait(p backoff.Policy) backoff.SlowWait {
	var w backoff.SlowWait
	if s, ok := p.(interface{ SlowWait() backoff.SlowWait }); ok {
		w = s.SlowWait()
	}
	w.Min, w.Max = span.Bounds(w.Min, w.Max, 10*time.Second, 2*time.Minute)
	return w
}

// drawSlow draws the least wait after the n-th ClassSlow in a row, from 0 on. w is a result of slowWait.
func drawSlow(w backoff.SlowWait, n int, r *rand.Rand) time.Duration {
	d := span.Grow(w.Min, slowGrowth, n, w.Max)
	return span.Uniform(r, d/2, d+min(d/2, span.Longest-d))
}
