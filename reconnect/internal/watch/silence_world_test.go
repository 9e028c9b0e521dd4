package watch

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/internal/walk"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// quietWorld is what the walk visits: the silence, the timer and the probe around it, the peer, the reader, and
// what has happened to them. It is always the time quietNow: as time passes, each instant moves back.
type quietWorld struct {
	s       silence
	at      quietPlace
	timer   time.Duration // until the next look, or -1
	heard   link.Instant  // when the last byte came
	paused  bool          // no goroutine reads
	patient bool          // the limits are longer than configured

	check     quietCheck
	suspended bool          // the machine was, since the last look
	stopped   time.Duration // for which the process was stopped during the probe

	a     action       // the probe in progress
	asked link.Instant // when it has asked the peer
	end   link.Instant // when its context ends

	checks, suspends, stops, holds, hooks int8 // how many there were

	// What the promises need.
	written int8         // counted probes since the peer was heard, or was not read
	last    link.Instant // when the last of them asked the peer; stops excepted
	must    link.Instant // when the peer is given up because of a Check or a suspension, or 0; stops excepted
	every   link.Instant // when the last probe began
	wrote   bool         // a probe was written
	excused bool         // something since the last byte gives the peer more time
	looks   int8         // how many there were at this time
	wrong   string
}

const (
	quietNow = 1000 * time.Hour // any time but 0
	longAgo  = 100              // steps after which more time makes no difference

	hookTakes = 3 // steps
)

// quietPlace is where the callback of the timer is.
type quietPlace uint8

const (
	between quietPlace = iota // between two looks
	begun                     // a probe begins
	pinging                   // an answer is awaited
	over                      // the peer was given up
)

// quietCheck is what has become of a Check.
type quietCheck uint8

const (
	noCheck      quietCheck = iota
	checkNow                // it comes at this time
	checkEarlier            // it came before, and the peer was not heard since
	checkHeard              // it came before, and the peer was heard since
)

// silenceRules are the events of a silence. A mistake replaces one.
type silenceRules struct {
	wake     func(s *silence, at link.Instant, wall int64, paused bool, l limits) bool
	hear     func(s *silence, heard link.Instant, l limits) bool
	look     func(s *silence, at link.Instant, checked, suspended bool, l limits) action
	next     func(s *silence, at link.Instant, l limits) action
	began    func(s *silence, at link.Instant, a action) time.Duration
	answered func(s *silence, took time.Duration, l limits) bool
	wrote    func(s *silence, at link.Instant, a action)
	held     func(s *silence)
}

var trueSilence = silenceRules{
	(*silence).wake, (*silence).hear, (*silence).look, (*silence).next, (*silence).began,
	(*silence).answered, (*silence).wrote, (*silence).held,
}

// quietConfig says what can happen.
type quietConfig struct {
	name   string
	limits limits
	step   time.Duration // the time that passes in one step
	stop   time.Duration // for which the process may be stopped; longer than two pulses

	checks, suspends, stops, holds, hooks int8 // how many there are at most
	pauses                                bool // the reader pauses and resumes
	yields                                bool // a Check takes the place of a probe that is about to begin, or has
	mute                                  bool // the connection does not note a pong as bytes
}

// quietWalker makes the steps.
type quietWalker struct {
	quietConfig
	r    silenceRules
	list []walk.Step[quietWorld]
}

func (x *quietWalker) first() quietWorld {
	w := quietWorld{heard: quietNow, every: quietNow, patient: x.limits.patient, timer: -1}
	x.set(&w, w.s.start(quietNow, quietNow.Nanoseconds(), quietNow, x.now(&w)))
	w.round(x)
	return w
}

// now returns the limits at this time.
func (x *quietWalker) now(w *quietWorld) limits {
	l := x.limits
	if !w.patient {
		l.probeAfter, l.patient = l.configuredProbeAfter, false
	}
	return l
}

// add adds a step. It is free if it needs neither the peer nor the user.
func (x *quietWalker) add(event string, free bool, from quietWorld, happen func(w *quietWorld)) {
	w := from
	happen(&w)
	w.round(x)
	x.list = append(x.list, walk.Step[quietWorld]{Event: event, Free: free, State: w})
}

func (x *quietWalker) steps(from quietWorld) []walk.Step[quietWorld] {
	x.list = nil
	if from.at == over || from.wrong != "" {
		return nil
	}
	x.outside(from)
	switch from.at {
	case between:
		if from.timer == 0 {
			x.add("a look", true, from, x.tick)
		} else {
			x.add("time passes", true, from, func(w *quietWorld) {
				d := x.step
				if w.timer > 0 {
					d = min(d, w.timer)
					w.timer -= d
				}
				x.pass(w, d)
			})
		}
		if from.timer >= 0 && from.stops < x.stops {
			x.add("the process is stopped", false, from, func(w *quietWorld) {
				w.stops, w.excused = w.stops+1, true
				w.timer = max(w.timer-x.stop, 0)
				x.stopFor(w)
			})
		}
	case begun:
		x.begin(from)
	case pinging:
		x.ping(from)
	}
	return x.list
}

// outside are the steps of the peer and the user.
func (x *quietWalker) outside(from quietWorld) {
	if !from.paused && from.heard != quietNow {
		x.add("a byte", false, from, func(w *quietWorld) { w.hears() })
	}
	if x.pauses && !from.paused {
		x.add("reading is paused", false, from, func(w *quietWorld) { w.paused, w.excused = true, true })
	}
	if from.paused {
		x.add("reading resumes", true, from, func(w *quietWorld) { w.paused = false })
	}
	if from.checks < x.checks && from.check == noCheck {
		x.add("Check", false, from, func(w *quietWorld) { w.checks++; w.asks() })
	}
	if from.suspends < x.suspends && !from.suspended {
		x.add("the machine is suspended", false, from, func(w *quietWorld) { w.suspends++; w.suspended = true })
	}
}

// asks is a Check.
func (w *quietWorld) asks() {
	w.check = checkNow
	if w.at == between {
		w.timer = 0
	}
}

// hears is a byte of the peer, which answers what has asked it.
func (w *quietWorld) hears() {
	w.heard, w.excused = quietNow, false
	if w.check == checkEarlier {
		w.check = checkHeard
	}
	w.settled()
}

// settled is when the peer owes no answer any more.
func (w *quietWorld) settled() { w.written, w.must = 0, 0 }

// pass lets time pass.
func (x *quietWalker) pass(w *quietWorld, d time.Duration) {
	if every := x.limits.probeEvery; every != 0 && w.at == between && quietNow-w.every >= every {
		w.wrong = "ProbeEvery is not kept"
	}
	w.looks = 0
	for _, at := range []*link.Instant{
		&w.s.quietSince, &w.s.probed, &w.s.counted, &w.s.midWait, &w.s.looked,
		&w.heard, &w.asked, &w.end, &w.last, &w.every,
	} {
		*at -= d
	}
	for _, at := range []*link.Instant{&w.s.deadline, &w.must} {
		if *at != 0 {
			*at -= d
		}
	}
	if w.check == checkNow {
		w.check = checkEarlier
	}
	w.s.lookedWall -= d.Nanoseconds()
	w.s.oldestAsked -= uint32(d.Milliseconds())
}

// stopFor lets the time pass for which the process is stopped.
func (x *quietWalker) stopFor(w *quietWorld) {
	x.pass(w, x.stop)
	w.last += x.stop
	if w.must != 0 {
		w.must += x.stop
	}
	if w.wrong == "ProbeEvery is not kept" {
		w.wrong = ""
	}
}

// slack is how much of a stop may count for the peer.
func (x *quietWalker) slack(w *quietWorld) time.Duration {
	if w.stops == 0 {
		return 0
	}
	return time.Duration(w.stops) * 2 * pulse(x.now(w).probeAfter)
}

// tick is a look, as that of Liveness.
func (x *quietWalker) tick(w *quietWorld) {
	w.looks++
	check, wall := w.check, quietNow.Nanoseconds()
	if w.suspended {
		wall += (3 * time.Second).Nanoseconds()
	}
	w.check, w.suspended, w.timer = noCheck, false, -1
	suspended := x.r.wake(&w.s, quietNow, wall, w.paused, x.now(w))
	if w.paused {
		w.settled()
	}
	checked := (check == checkNow || check == checkEarlier) && !w.paused
	x.hear(w)
	probed := w.s.probed
	a := x.r.look(&w.s, quietNow, checked, suspended, x.now(w))
	switch a.kind {
	case actProbe:
		w.a, w.at = a, begun
	case actCut:
		x.cut(w, probed)
	default:
		if (checked || suspended) && !w.paused {
			w.wrong = "a Check or a suspension does not probe"
		}
		x.set(w, a)
	}
}

// hear reports what was heard last.
func (x *quietWalker) hear(w *quietWorld) {
	if w.s.paused {
		return
	}
	if x.r.hear(&w.s, w.heard, x.now(w)) {
		w.patient = false
	}
	if w.heard < w.s.probed {
		return
	}
	if w.settled(); w.s.probes != 0 || w.s.deadline != 0 {
		w.wrong = "an answer leaves a probe or a deadline"
	}
}

// set sets the timer.
func (x *quietWalker) set(w *quietWorld, a action) {
	w.at, w.a, w.stopped, w.timer = between, action{}, 0, -1
	if a.kind == actWait {
		w.timer = a.wait
	}
	if w.check != noCheck {
		w.timer = 0
	}
	l := x.now(w)
	switch {
	case w.timer < 0 && (l.watches() || w.s.deadline != 0):
		w.wrong = "no look is due"
	case w.timer < 0 && a.kind == actWait:
		w.wrong = "a look is due in the past"
	case w.timer > pulse(l.probeAfter) && (w.s.probes > 0 || w.s.deadline != 0):
		w.wrong = "a wait for an answer is longer than a pulse"
	case w.looks > 4:
		w.wrong = "looks follow each other without a pause"
	}
}

// cut gives up the peer.
func (x *quietWalker) cut(w *quietWorld, probed link.Instant) {
	w.at = over
	slack := x.slack(w)
	switch {
	case w.paused:
		w.wrong = "cut although no goroutine reads"
	case w.heard >= probed:
		w.wrong = "cut although the peer has answered"
	case w.must != 0 && quietNow >= w.must-slack:
	case w.written < 2:
		w.wrong = "cut after less than two probes"
	case quietNow-w.last < x.now(w).probeAfter-slack:
		w.wrong = "cut before the last probe could be answered"
	case quietNow-w.heard < x.now(w).configuredLimit:
		w.wrong = "cut before the limit"
	}
	*w = quietWorld{at: over, wrong: w.wrong}
}

// begin are the steps of a probe that begins.
func (x *quietWalker) begin(from quietWorld) {
	x.add("the peer is asked", true, from, func(w *quietWorld) { x.ask(w, false) })
	if from.holds < x.holds && x.limits.answersUnseen {
		x.add("the window holds the probe", false, from, func(w *quietWorld) { x.ask(w, true) })
	}
	if from.hooks < x.hooks {
		x.add("the hook takes long", false, from, func(w *quietWorld) {
			w.hooks, w.excused = w.hooks+1, true
			x.pass(w, hookTakes*x.step)
		})
	}
	if x.yields && from.checks < x.checks && from.check == noCheck {
		x.add("the probe gives way to a Check", false, from, func(w *quietWorld) {
			w.checks++
			w.asks()
			w.s.gaveWay(quietNow, w.a)
			if w.excused = true; w.a.counts { // the probe of the Check counts for it
				w.written, w.last = w.written+1, quietNow
			}
			x.hear(w)
			x.set(w, x.r.next(&w.s, quietNow, x.now(w)))
		})
	}
}

// ask begins the probe, and ends it unless it waits for the answer.
func (x *quietWalker) ask(w *quietWorld, held bool) {
	limit := x.r.began(&w.s, quietNow, w.a)
	w.every, w.asked, w.end, w.at = w.s.probed, quietNow, quietNow+limit, pinging
	if w.a.must && (w.must == 0 || quietNow+w.a.answerWithin < w.must) {
		w.must = quietNow + w.a.answerWithin
	}
	if x.limits.answersUnseen {
		w.s.await()
		x.finish(w, held)
	}
}

// ping are the steps of a probe that waits for its answer.
func (x *quietWalker) ping(from quietWorld) {
	if from.end > quietNow {
		x.add("time passes", true, from, func(w *quietWorld) { x.pass(w, min(x.step, w.end-quietNow)) })
	} else {
		x.add("the probe is late", true, from, func(w *quietWorld) { x.finish(w, false) })
	}
	if !from.paused && !(x.mute && from.asked == quietNow) { // else it may be probed again without a pause
		x.add("a pong", false, from, func(w *quietWorld) {
			if w.hears(); x.mute {
				w.heard, w.excused = from.heard, true
			}
			if x.r.answered(&w.s, quietNow-w.asked, x.now(w)) {
				w.patient = false
			}
			w.a.counts = false // it has its answer
			x.finish(w, false)
		})
	}
	if from.holds < x.holds {
		x.add("the window holds the probe", false, from, func(w *quietWorld) { x.finish(w, true) })
	}
	if x.yields && from.checks < x.checks && from.check == noCheck {
		x.add("a Check ends the probe", false, from, func(w *quietWorld) {
			w.checks, w.excused = w.checks+1, true
			w.asks()
			x.finish(w, false)
		})
	}
	if from.stops < x.stops {
		x.add("the process is stopped", false, from, func(w *quietWorld) {
			w.stops, w.excused = w.stops+1, true
			x.stopFor(w)
			w.end += x.stop
			w.stopped += x.stop
		})
	}
}

// finish ends the probe.
func (x *quietWalker) finish(w *quietWorld, held bool) {
	w.s.excuse(w.stopped)
	if held {
		w.holds, w.excused = w.holds+1, true
		w.must = 0
		if !w.a.counts {
			w.written = max(w.written-1, 0)
		}
		x.r.held(&w.s)
	} else {
		x.r.wrote(&w.s, w.asked+w.stopped, w.a)
		w.wrote = true
		if w.a.counts && w.heard < w.s.probed {
			if w.written > 0 && w.asked+w.stopped-w.last < x.now(w).probeAfter-x.slack(w) {
				w.wrong = "probed before the last probe could be answered"
			}
			w.written, w.last = min(w.written+1, 3), w.asked+w.stopped
		}
	}
	x.hear(w)
	x.set(w, x.r.next(&w.s, quietNow, x.now(w)))
}

// round makes equal what makes no difference.
func (w *quietWorld) round(x *quietWalker) {
	if w.at == over {
		return
	}
	first := quietNow - longAgo*x.step
	w.heard, w.s.quietSince, w.every = max(w.heard, first), max(w.s.quietSince, first), max(w.every, first)
	s := &w.s
	if s.probes == 0 {
		s.counted = 0
	}
	if w.written == 0 {
		w.last = 0
	}
	if s.probes == 0 && s.deadline == 0 || w.at != between {
		s.midWait = 0
	}
	if w.at != pinging {
		w.asked, w.end = 0, 0
	}
	s.evidence &= probedOnce
	switch {
	case (w.excused || x.limits.configuredLimit == 0) && w.heard < s.probed:
		w.heard = min(s.quietSince, s.probed-1)
	case w.excused && w.heard > s.probed && w.heard <= s.quietSince && !s.awaiting:
		w.heard = s.quietSince
	}
	if !w.patient {
		s.awaiting = false // nothing depends on how long an answer takes
	}
	if !s.awaiting {
		s.oldestAsked = 0
	} else {
		s.oldestAsked = max(s.oldestAsked, uint32((quietNow - x.limits.configuredLimit).Milliseconds()))
	}
	if w.a.silence = 0; !w.a.counts && !w.patient {
		w.asked = 0
	}
	if x.limits.configuredLimit == 0 {
		s.quietSince = quietNow
	}
	if w.at != begun {
		s.looked, s.lookedWall = quietNow, quietNow.Nanoseconds()
	}
	if x.limits.probeEvery == 0 {
		w.every = 0
		switch {
		case w.heard > s.probed:
			s.probed = w.heard - 1
		case w.heard < s.probed && s.probed < quietNow:
			s.probed = max(w.heard+1, quietNow-1)
		}
	}
	if w.at == begun && w.a.counts && w.written == 0 { // counted is not set yet
		s.counted = 0
	}
}

// broken returns the promise that a state breaks, or "".
func (x *quietWalker) broken(w quietWorld) string {
	l := x.now(&w)
	switch {
	case w.wrong != "" || w.at == over:
		return w.wrong
	case l.configuredLimit != 0 && !w.excused && !w.paused && quietNow-w.heard > l.probeAfter*4:
		return "a silent peer is not given up"
	case w.must != 0 && quietNow > w.must+pulse(l.probeAfter)+x.slack(&w)+time.Duration(w.hooks)*hookTakes*x.step:
		return "a Check or a suspension has no end"
	case w.wrote != (w.s.evidence&probedOnce != 0):
		return fmt.Sprintf("evidence %b of a probe", w.s.evidence)
	}
	return ""
}
