package schedule

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// This file has what the supervisor of a walk does with each Action, and the promises that it checks.

// Next makes the walker a backoff.Policy, the one that every walk uses. Next compares the History that it is given
// with what has happened in the walk.
func (x *walker) Next(h backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	w, v := x.w, x.verdict
	x.asked = true
	if x.inNext {
		v = backoff.Verdict{Class: backoff.ClassOverload}
	}
	x.must(!w.stopping, "the policy is asked, and no dial may follow")
	x.must(w.next == never || !x.inNext && v.RetryAfter > 0, "the policy is asked, and the time of the next dial is known")
	x.must(h.Hung == x.inNext, "the policy is told that a handshake hangs, and that one has failed")
	again := v.Class == w.class
	w.class, w.renew = v.Class, v.Class == backoff.ClassRefresh || w.renew && x.inNext
	switch {
	case v.Class == backoff.ClassRefresh && again:
		v.Class = backoff.ClassSlow
	case v.Class == backoff.ClassSlow && v.Lenient && !again:
		v.Class = backoff.ClassRetry
	}
	x.must(h.Verdict.Class == v.Class, "the verdict of the second in a row")
	slow := int8(0)
	switch {
	case v.Class == backoff.ClassSlow:
		slow = slowWaits[w.slows]
		w.slows = min(w.slows+1, mostSlows)
	case !x.inNext:
		w.slows = 0
	}
	x.must(h.MinWait == units(slow), "the wait of a slow verdict")
	x.must(h.Verdict.RetryAfter == v.RetryAfter, "the policy is not told what the server told us")
	x.must(h.Refused == w.refused, "the policy is not told whether a dial was refused")
	x.must(h.Elapsed == units(int8(max(-x.began, 0))), "the age of the outage")
	x.must(x.inNext || h.Hang > 0 == w.hangs, "the policy is not told whether a handshake hangs")
	if h.Hang > 0 && w.hangs {
		x.must(int8(min(h.DialsBeside, mostBeside)) == w.beside, "the number of dials beside")
	}
	x.must(x.c.giveUp == 0 || min(int8(h.N), x.c.giveUp) == w.waits, "the number of waits")
	if w.waits = min(w.waits+1, x.c.giveUp); x.c.giveUp > 0 && h.N >= int(x.c.giveUp) {
		w.stopping, w.gaveUp = true, true
		return backoff.Step{}, false
	}
	step := backoff.Step{Wait: units(policyWait), Handshake: units(x.c.hang), Swap: x.c.swap && h.Hang > 0 && h.DialsBeside == 0}
	if h.Hung {
		step.Wait = 0
	}
	step.SwapIfFull = x.c.ifFull && h.Hang > 0
	x.wait(v.Class, step, slow)
	return step, true
}

// Start returns the limits on the first dial.
func (x *walker) Start(*rand.Rand) backoff.Step { return backoff.Step{Handshake: units(x.c.hang)} }

// wait notes when the next dial must begin, after a verdict of class c and the step that the policy returned.
// The wait is at least so long.
func (x *walker) wait(c backoff.Class, step backoff.Step, least int8) {
	w, wait := x.w, max(inUnits(step.Wait), least)
	if c == backoff.ClassRefresh {
		wait = 0
	}
	w.next, w.swap, w.ifFull = max(w.hold, 0), step.Swap, step.SwapIfFull
	if w.cut = w.kicked && w.hold == never; !w.cut {
		w.next += moment(wait)
	}
	w.kicked, w.waited = false, int8(w.next)
}

// SlowWait gives the waits of slowWaits, as the least of their range is drawn.
func (x *walker) SlowWait() backoff.SlowWait {
	return backoff.SlowWait{Min: units(10), Max: units(slowMax)}
}

// settle does what Next says until there is nothing to do.
func (x *walker) settle() {
	w, d := x.w, x.d
	x.inNext = true
	for n := 0; ; n++ {
		switch a := x.r.next(d, epoch); a.Do {
		case DoDial:
			x.begins(a)
		case DoKeep:
			x.keeps(a)
		case DoCut:
			x.cuts(a.Which)
		case DoStop:
			x.must(w.stopping, "it stops without a reason")
			x.must(w.slots == [2]slot{}, "a dial is left after the end")
			x.must(d.GaveUp() == w.gaveUp, "it does not say whether the policy gave up")
			*w = world{done: stops, at: never, up: -1, wrong: w.wrong}
			return
		case DoWait:
			x.waitsUntil(a.At)
			w.m = freeze(d, x.c)
			return
		}
		if n > 8 {
			x.broken("there is always something to do")
			return
		}
	}
}

// begins checks a DoDial, and begins the dial.
func (x *walker) begins(a Action) {
	w := x.w
	x.tries++
	other := w.slots[1-a.Which]
	x.must(w.slots[a.Which].at == nowhere, "a dial begins in the place of another")
	x.must(other.at == nowhere || !x.c.one, "two dials at a time")
	x.must(other.at == nowhere || other.kept, "a dial begins beside one that does not hang")
	x.must(w.up < 0, "a dial begins during a session")
	x.must(!w.stopping, "a dial begins after the end")
	x.must(w.hold == never, "a dial begins before the time that the server told us is over")
	x.must(w.next != never && w.next <= 0, "a dial begins before its wait is over")
	x.must(a.Kicked == w.cut, "a dial does not say whether a kick has cut the wait")
	x.must(a.Attempt.Number == x.tries, "the number of a try")
	x.must(a.Attempt.Refresh == w.renew, "a try does not say whether the credentials were refused")
	x.must(a.Attempt.Handshake == units(x.c.hang), "the limit on the handshake")
	if w.hangs {
		w.beside = min(w.beside+1, mostBeside)
	}
	w.slots[a.Which] = slot{at: onWay, swap: w.swap, ifFull: w.ifFull}
	if x.c.gate {
		w.slots[a.Which].at = atGate
	}
	w.next, w.cut, w.swap = never, false, false
}

// over reports whether the handshake of a dial has taken as long as it may.
func (x *walker) over(s slot) bool {
	return s.at == shakes && s.since+moment(x.c.limit(s.kept)) <= 0
}

// keeps checks a DoKeep, and keeps the dial.
func (x *walker) keeps(a Action) {
	w := x.w
	s := &w.slots[a.Which]
	x.must(s.at != nowhere && !s.kept, "a dial is kept that is not under way, or is kept already")
	x.must(!w.slots[1-a.Which].kept, "two dials are kept")
	x.must(!x.c.one, "a dial is kept where there is one connection")
	if a.Kicked {
		x.must(w.kicked, "a dial is kept for a kick that was not")
		w.kicked, w.next, w.swap = false, max(w.hold, 0), false
		w.ends()
	} else {
		x.must(x.over(*s), "a dial is kept although its handshake does not hang")
	}
	if !w.hangs {
		w.hangs, w.beside = true, 0
	}
	s.kept, s.swap = true, false
}

// cuts checks a DoCut, and ends the dial.
func (x *walker) cuts(which int) {
	w := x.w
	s, other := w.slots[which], w.slots[1-which]
	switch {
	case s.at == nowhere:
		x.broken("a dial is cut that is not under way")
	case w.up >= 0 || w.stopping:
	case s.kept && x.over(s):
		if !x.over(other) || !other.swap || x.d.outage.hang == nil {
			w.ends()
		} // if both handshakes reach their limit at one instant, either may be cut first
	case s.kept:
		x.must(x.over(other) && other.swap, "the dial that is kept is cut too early")
	case x.c.one && x.over(s):
		if !w.hangs {
			w.hangs, w.beside = true, 0
		}
	default:
		x.must(x.over(s) && other.kept && !s.swap, "a dial is cut without a reason")
	}
	w.slots[which] = slot{}
}

// waitsUntil checks a DoWait, and what can be asked of the Dials meanwhile.
func (x *walker) waitsUntil(at time.Time) {
	w := x.w
	w.at = momentOf(at, -1)
	if w.at != never {
		x.must(w.at > 0, "it waits for a time that is past")
	}
	x.must(x.d.Attempts() == x.tries, "the number of tries")
	x.must(momentOf(x.d.outage.began, -x.c.oldest) == max(x.began, -x.c.oldest) || x.c.oldest == 0, "the beginning of the outage")
	x.must(!w.stopping, "it goes on after the end")
	x.must(momentOf(x.d.Due(), never) == w.next, "the time of the next dial")
	if w.up >= 0 {
		x.must(w.slots == [2]slot{}, "a dial is left beside a session")
		x.must(x.d.History() == backoff.History{}, "there is a history during a session")
	} else {
		x.must(x.alone() >= 0 != (w.next != never), "nobody dials, or two do")
	}
	want := w.next
	for _, s := range w.slots {
		if until := s.since + moment(x.c.limit(s.kept)); s.at == shakes && (want == never || until < want) {
			want = until
		}
	}
	x.must(w.at == want, "it waits for another time than that of the next dial, or of a handshake that hangs")
}
