package schedule

import (
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Action is what to do next.
type Action struct {
	Do      Do              // the kind
	Which   int             // 0 or 1, with DoDial, DoKeep and DoCut
	Attempt backoff.Attempt // with DoDial; its Connected is nil
	At      time.Time       // when to call Next again, with DoWait; zero: when something has happened

	Kicked bool // because of a kick: with DoKeep not because the handshake hangs, with DoDial before the wait was over
}

// Do is the kind of an [Action].
type Do uint8

// The kinds.
const (
	DoWait Do = iota // until Action.At
	DoDial           // begin the dial
	DoKeep           // nothing but this: the dial hangs and goes on, and another will begin beside it
	DoCut            // cancel the dial
	DoStop           // the policy gave up, or a verdict was ClassStop
)

// Next returns what to do now.
func (d *Dials) Next(now time.Time) Action {
	if d.search == nil {
		return Action{}
	}
	for i := range d.dials {
		if x := &d.dials[i]; x.state == cutting || x.state != free && d.phase == stopped {
			return d.cut(i)
		}
	}
	switch d.phase {
	case up:
		d.search = nil
		d.outage.last = nil // which no later History needs
		return Action{}
	case stopped:
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
	d.dials[which] = dial{state: connecting, swap: d.step.Swap, ifFull: d.step.SwapIfFull, since: now, limit: span.Positive(d.step.Handshake, limit)}
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
