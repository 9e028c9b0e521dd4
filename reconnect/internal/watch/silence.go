package watch

import (
	"math"
	"time"

	"github.com/redial-go/redial/reconnect/internal/link"
)

// silence decides when the peer of one link is probed and when it is given up. A third of the limit after
// the last byte the peer is probed, after two thirds again, and at the limit it is given up.
//
// A silence has no timer, no clock and no link: [Liveness] reports each event, with the time, and carries out
// the actions that come back. Each look begins with wake, and with hear unless reading is paused; look then
// says what to do. If that is a probe, began, await, excuse, and wrote or held report how it went, and next
// says when to look again.
type silence struct {
	quietSince link.Instant // when the last byte came, or later if reading was paused then
	probed     link.Instant // when the last probe began; anything heard since then is an answer
	counted    link.Instant // when the last counted probe asked the peer; later if the process was stopped since
	deadline   link.Instant // when the peer is given up at the latest; zero means by the limit only
	midWait    link.Instant // the middle of the wait for the next look
	looked     link.Instant // when the last look began
	lookedWall int64        // the same by the wall clock, in ns

	oldestAsked uint32   // when the oldest unanswered Liveness.Probe began, in ms; valid while awaiting
	probes      int8     // counted probes since something was last heard
	evidence    evidence // what the session has shown about the answers of its peer
	awaiting    bool     // a Liveness.Probe has asked, and nothing has been heard since
	paused      bool     // no goroutine read at the last look
}

// checkLimit is how long the peer has for the answer to a Check, and after a suspension if there is no limit.
const checkLimit = 5 * time.Second

// limits say how long a peer may be silent, and when it is probed.
type limits struct {
	configuredLimit      time.Duration // on silence; zero means no limit
	configuredProbeAfter time.Duration // a third of that
	probeAfter           time.Duration // the silence before each probe, and the time for its answer
	probeEvery           time.Duration // zero means no probes except those of the limit
	patient              bool          // probeAfter is longer than configured
	answersUnseen        bool          // a probe ends without its answer, which only hear reports
}

// watches reports whether the peer is probed without a Check.
func (l limits) watches() bool { return l.configuredLimit != 0 || l.probeEvery != 0 }

// probeAfter returns a third of the limit on silence; without a limit, how often the peer is probed, or
// checkLimit.
func (o *LivenessOptions) probeAfter() time.Duration {
	switch {
	case o.Limit != 0:
		return max(o.Limit/3, 1)
	case o.ProbeEvery != 0:
		return o.ProbeEvery
	}
	return checkLimit
}

// action is what a silence wants done.
type action struct {
	kind actionKind

	wait time.Duration // actWait: until the next look

	// Of actProbe.
	answerWithin time.Duration // limit on the probe
	silence      time.Duration // how long nothing was heard
	must         bool          // the peer is given up unless it answers in that time
	counts       bool          // two of these without an answer are needed before the peer is given up
}

// actionKind says which of its fields an action uses.
type actionKind uint8

const (
	actNone  actionKind = iota // until the next Check
	actWait                    // look again later
	actProbe                   // probe the peer
	actCut                     // the peer has been silent for too long
)

// start begins the watch of a link that was ready at the times ready and wall, and says when to look first.
func (s *silence) start(ready link.Instant, wall int64, at link.Instant, l limits) action {
	s.quietSince, s.probed, s.midWait, s.looked, s.lookedWall = ready, ready, ready, ready, wall
	switch {
	case s.patienceUntested(l):
		return s.waitFor(0, at, l)
	case l.watches():
		return s.waitFor(l.probeAfter, at, l)
	}
	return action{}
}

// wake notes that a look begins, at the times at and wall, and whether reading is paused. It reports whether
// the machine was suspended since the last look: then the wall clock is ahead of the monotonic one, which
// stands still on most systems. Time for which the process was stopped does not count for a probe.
func (s *silence) wake(at link.Instant, wall int64, paused bool, l limits) (suspended bool) {
	ahead := time.Duration(wall-s.lookedWall) - (at - s.looked)
	s.looked, s.lookedWall, s.paused = at, wall, paused
	s.excuse(stopped(at-s.midWait, pulse(l.probeAfter)))
	if paused { // there is no verdict on a peer that is not read
		s.quietSince, s.probes, s.deadline = at, 0, 0
	}
	return ahead > 2*time.Second
}

// excuse gives the peer more time for its answer, because the process was stopped.
func (s *silence) excuse(stopped time.Duration) {
	s.counted += stopped
	if s.deadline != 0 {
		s.deadline += stopped
	}
}

// hear notes when the last byte came. If that is after the last probe, the probe has been answered. It reports
// whether the answer was prompt, so that patience is no longer needed.
func (s *silence) hear(heard link.Instant, l limits) (prompt bool) {
	s.quietSince = max(s.quietSince, heard)
	if heard >= s.probed {
		s.probes, s.deadline = 0, 0
	}
	if s.awaiting && heard > s.probed {
		s.awaiting = false
		took := time.Duration(uint32(heard.Milliseconds())-s.oldestAsked) * time.Millisecond
		return promptAnswer(took, l.configuredLimit)
	}
	return false
}

// look decides what to do now. checked says that Check has asked for a probe and nothing was heard since.
func (s *silence) look(at link.Instant, checked, suspended bool, l limits) action {
	everyDue := l.probeEvery != 0 && s.looked-s.probed >= l.probeEvery
	if s.paused {
		if everyDue { // the server wants it whether or not its messages are read
			return action{kind: actProbe, answerWithin: l.probeAfter}
		}
		return s.next(at, l)
	}
	quiet := s.quietFor(at, l)
	// The look may be late, because the process or the page was stopped. So the peer is given up only
	// if it also had the time for an answer after each probe.
	answerable := s.probes == 0 || s.looked-s.counted >= l.probeAfter
	due := l.configuredLimit != 0 && quiet >= l.probeAfter*time.Duration(s.probes+1) && answerable
	switch {
	case quiet >= l.probeAfter*3 && s.probes >= 2 && answerable, s.deadline != 0 && s.looked >= s.deadline:
		return action{kind: actCut}
	case suspended || checked || due || everyDue || s.patienceUntested(l):
		if due {
			s.probes = min(s.probes+1, math.MaxInt8-1)
		}
		within := answerWithin(checked, suspended, l)
		must := suspended || checked
		return action{kind: actProbe, answerWithin: within, silence: quiet, must: must, counts: due}
	}
	return s.next(at, l)
}

// answerWithin returns how long the peer has for the answer to a probe.
func answerWithin(checked, suspended bool, l limits) time.Duration {
	switch limited := l.configuredLimit != 0; {
	case checked && limited:
		return min(l.configuredProbeAfter, checkLimit)
	case checked || suspended && !limited:
		return checkLimit
	}
	return l.probeAfter
}

// next decides when to look again, at the end of a look that has probed or found nothing to do.
func (s *silence) next(at link.Instant, l limits) action {
	if !l.watches() && s.deadline == 0 {
		return action{}
	}
	d := l.probeAfter
	switch {
	case s.paused && s.patienceUntested(l): // soon after reading resumes
		d = pulse(l.configuredProbeAfter)
	case s.paused:
	case l.configuredLimit != 0:
		d = l.probeAfter*time.Duration(s.probes+1) - s.quietFor(at, l)
	}
	if s.probes > 0 {
		d = max(d, s.counted+l.probeAfter-at)
	}
	if s.deadline != 0 {
		d = min(d, s.deadline-at)
	}
	return s.waitFor(d, at, l)
}

// waitFor returns a wait for d, or until a probe is due anyway. While an answer is awaited it takes a pulse at
// most.
func (s *silence) waitFor(d time.Duration, at link.Instant, l limits) action {
	if l.probeEvery != 0 {
		d = min(d, s.probed+l.probeEvery-at)
	}
	if s.probes > 0 || s.deadline != 0 {
		d = min(d, pulse(l.probeAfter))
	}
	if l.answersUnseen && l.configuredLimit != 0 { // to see an answer soon enough to know how long it took
		d = min(d, l.configuredProbeAfter)
	}
	d = max(d, 0)
	s.midWait = at + d/2
	return action{kind: actWait, wait: d}
}

// quietFor returns how long nothing was heard while the link was read.
func (s *silence) quietFor(at link.Instant, l limits) time.Duration {
	quiet := at - s.quietSince
	if l.configuredLimit != 0 && quiet >= l.configuredLimit {
		s.evidence |= outlastedLimit
	}
	return quiet
}

// began notes that probe a asks the peer, at the time at, and returns the limit on it. If a.must is set, the
// peer gets a deadline, which a later probe neither moves nor outlives.
func (s *silence) began(at link.Instant, a action) (limit time.Duration) {
	s.probed, limit = s.looked, a.answerWithin
	if a.must && (s.deadline == 0 || at+limit < s.deadline) {
		s.deadline = at + limit
	}
	if s.deadline != 0 {
		limit = min(limit, s.deadline-at)
	}
	return limit
}

// await notes that the probe is a Liveness.Probe, the answer to which is timed by hear.
func (s *silence) await() {
	if !s.awaiting {
		s.awaiting, s.oldestAsked = true, uint32(s.probed.Milliseconds())
	}
}

// answered notes that the answer to a ping came after took. It reports whether that was prompt, as hear does.
func (s *silence) answered(took time.Duration, l limits) (prompt bool) {
	s.probes, s.deadline = 0, 0
	return promptAnswer(took, l.configuredLimit)
}

// wrote notes that probe a was written. It asked the peer at the time at, plus the time for which the process
// was stopped since.
func (s *silence) wrote(at link.Instant, a action) {
	s.evidence |= probedOnce
	s.gaveWay(at, a)
}

// held notes that the flow window has held the probe back, which therefore was none.
func (s *silence) held() { s.probes, s.deadline = max(s.probes-1, 0), 0 }

// gaveWay notes that probe a was not begun at the time at, because the probe of a Check takes its place or the
// session ends.
func (s *silence) gaveWay(at link.Instant, a action) {
	if a.counts {
		s.counted = at
	}
}

// patienceUntested reports whether the session is to be probed, whatever was heard, to find out whether
// patience is still needed.
func (s *silence) patienceUntested(l limits) bool { return l.patient && s.evidence&probedOnce == 0 }

// evidence is what one session has shown about the answers of its peer.
type evidence uint8

const (
	probedOnce     evidence = 1 << iota // the session was probed
	outlastedLimit                      // the session was silent for longer than the configured limit
	endedSilent                         // the session has ended as silent
)

// promptAnswer reports whether an answer that took so long shows that the configured limit is long enough:
// it came within two thirds of it.
func promptAnswer(took, configuredLimit time.Duration) bool { return took <= configuredLimit/3*2 }

// pulse is the longest wait of a timer while an answer is awaited for limit.
func pulse(limit time.Duration) time.Duration { return max(limit/8, 1) }

// stopped returns for how long the process, or the page, was stopped during a wait, or 0 if the timer is late
// by less than about a pulse. sinceMiddle is the time since the middle of the wait. So the second half still
// counts, and the other goroutines get at least half a pulse to read what has come meanwhile.
func stopped(sinceMiddle, pulse time.Duration) time.Duration {
	if sinceMiddle > pulse+pulse/2 {
		return sinceMiddle
	}
	return 0
}
