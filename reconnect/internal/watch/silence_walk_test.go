package watch

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// This file walks every state that a silence can reach in a small world, breadth first. silence_world_test.go
// says what can happen there.

// The limits of the walks. A pulse of wide is 1 ms, one of narrow 1 ns.
var (
	wide   = limits{configuredLimit: 3 * third, configuredProbeAfter: third, probeAfter: third}
	narrow = limits{configuredLimit: 6, configuredProbeAfter: 2, probeAfter: 2}
	lone   = limits{configuredProbeAfter: checkLimit, probeAfter: checkLimit}
	every  = limits{configuredProbeAfter: checkLimit / 2, probeAfter: checkLimit / 2, probeEvery: checkLimit / 2}
)

const (
	ms    = time.Millisecond
	third = 8 * ms
)

// and returns l with changes.
func (l limits) and(changes ...func(*limits)) limits {
	for _, change := range changes {
		change(&l)
	}
	return l
}

// unseen is for a Liveness.Probe.
func unseen(l *limits) { l.answersUnseen = true }

// doubled is after a silent session.
func doubled(l *limits) { l.probeAfter, l.patient = 2*l.probeAfter, true }

// alsoEvery adds ProbeEvery.
func alsoEvery(d time.Duration) func(*limits) { return func(l *limits) { l.probeEvery = d } }

// configs say what can happen in each walk, the small walks first.
var configs = []quietConfig{
	{name: "Probe and ProbeEvery", limits: wide.and(unseen, alsoEvery(5*ms)), step: ms, pauses: true},
	{name: "Checks", limits: narrow, step: 1, checks: 2, suspends: 1, yields: true},
	{name: "mute pongs", limits: narrow, step: 1, checks: 1, mute: true},
	{name: "no probes except those of Check", limits: lone, step: checkLimit / 8, checks: 2, suspends: 1},
	{name: "no limit", limits: every, step: every.probeAfter / 8, checks: 1, suspends: 1, pauses: true},
	{name: "pauses", limits: wide, step: ms, pauses: true, checks: 1},
	{name: "patience and Probe", limits: wide.and(unseen, doubled), step: ms, pauses: true},
	{name: "patience", limits: narrow.and(doubled), step: 1, checks: 1, pauses: true, holds: 1},
	{name: "wide Checks", limits: wide, step: ms, checks: 1, suspends: 1, yields: true},
	{name: "stops and Probe", limits: wide.and(unseen), step: ms, stops: 1, stop: 9 * ms, checks: 1},
	{name: "stops", limits: wide, step: ms, stops: 2, stop: 9 * ms, checks: 1},
	{name: "ProbeEvery", limits: narrow.and(alsoEvery(3)), step: 1,
		checks: 1, suspends: 1, pauses: true, holds: 1, hooks: 1},
	{name: "Probe", limits: narrow.and(unseen), step: 1, checks: 1, suspends: 1, pauses: true, holds: 1, hooks: 1},
	{name: "pings", limits: narrow, step: 1,
		checks: 1, suspends: 1, stops: 1, stop: 5, holds: 1, hooks: 1, yields: true},
}

func walkSilence(c quietConfig, r silenceRules) *walk.Walk[quietWorld] {
	x := &quietWalker{quietConfig: c, r: r}
	space := walk.Space[quietWorld]{First: x.first(), Steps: x.steps, Broken: x.broken}
	if c.limits.configuredLimit != 0 {
		cut := func(w quietWorld) bool { return w.at == over }
		space.Ways = []walk.Way[quietWorld]{{Wrong: "a silent peer is never given up", Goal: cut}}
	}
	return walk.All(space)
}

func TestSilenceKeepsPromisesInEachState(t *testing.T) {
	walk.SkipWithRace(t)
	for _, c := range configs {
		w := walkSilence(c, trueSilence)
		assert.Empty(t, w.Wrong, c.name)
		t.Logf("%s: %d states, %d edges", c.name, len(w.States), w.Edges)
		cut := slices.ContainsFunc(w.States, func(w quietWorld) bool { return w.at == over })
		assert.True(t, cut, c.name)
	}
}

// Each mistake is planted in the machine alone, and the walk finds it.
func TestSilenceWalkFindsEachMistake(t *testing.T) {
	walk.SkipWithRace(t)
	for _, name := range slices.Sorted(maps.Keys(silenceMistakes)) {
		t.Run(name, func(t *testing.T) {
			r := trueSilence
			silenceMistakes[name](&r)
			found := ""
			for _, c := range configs {
				if found = walkSilence(c, r).Wrong; found != "" {
					found = c.name + ": " + found
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(strings.SplitN(found, "\n", 2)[0])
		})
	}
}

var silenceMistakes = map[string]func(*silenceRules){
	"one probe is enough": func(r *silenceRules) {
		r.look = func(s *silence, at link.Instant, checked, suspended bool, l limits) action {
			if s.probes == 1 && at-s.counted >= l.probeAfter {
				return action{kind: actCut}
			}
			return s.look(at, checked, suspended, l)
		}
	},
	"the last probe has no time for its answer": func(r *silenceRules) {
		r.look = func(s *silence, at link.Instant, checked, suspended bool, l limits) action {
			if s.probes >= 2 && at-s.quietSince >= 3*l.probeAfter {
				return action{kind: actCut}
			}
			return s.look(at, checked, suspended, l)
		}
	},
	"a silent peer is never given up": func(r *silenceRules) {
		r.look = func(s *silence, at link.Instant, checked, suspended bool, l limits) action {
			if a := s.look(at, checked, suspended, l); a.kind != actCut {
				return a
			}
			return action{kind: actWait, wait: pulse(l.probeAfter)}
		}
	},
	"a suspension does not probe": func(r *silenceRules) {
		r.look = func(s *silence, at link.Instant, checked, _ bool, l limits) action {
			return s.look(at, checked, false, l)
		}
	},
	"ProbeEvery needs a reader": func(r *silenceRules) {
		r.look = func(s *silence, at link.Instant, checked, suspended bool, l limits) action {
			if s.paused {
				return s.next(at, l)
			}
			return s.look(at, checked, suspended, l)
		}
	},
	"an answer leaves the probes": func(r *silenceRules) {
		r.hear = func(s *silence, heard link.Instant, l limits) bool {
			probes := s.probes
			defer func() { s.probes = probes }()
			return s.hear(heard, l)
		}
	},
	"an answer leaves the deadline": func(r *silenceRules) {
		r.hear = func(s *silence, heard link.Instant, l limits) bool {
			deadline := s.deadline
			defer func() { s.deadline = deadline }()
			return s.hear(heard, l)
		}
	},
	"an answer to a ping answers nothing": func(r *silenceRules) {
		r.answered = func(s *silence, _ time.Duration, _ limits) bool { return false }
	},
	"a stop forgets the deadline": func(r *silenceRules) {
		r.wake = func(s *silence, at link.Instant, wall int64, paused bool, l limits) bool {
			before := s.deadline
			suspended := s.wake(at, wall, paused, l)
			s.deadline = min(s.deadline, before)
			return suspended
		}
	},
	"a stop between looks counts": func(r *silenceRules) {
		r.wake = func(s *silence, at link.Instant, wall int64, paused bool, l limits) bool {
			s.midWait = at
			return s.wake(at, wall, paused, l)
		}
	},
	"a pause leaves the probes": func(r *silenceRules) {
		r.wake = func(s *silence, at link.Instant, wall int64, paused bool, l limits) bool {
			probes := s.probes
			defer func() { s.probes = probes }()
			return s.wake(at, wall, paused, l)
		}
	},
	"a pause leaves the deadline": func(r *silenceRules) {
		r.wake = func(s *silence, at link.Instant, wall int64, paused bool, l limits) bool {
			deadline := s.deadline
			defer func() { s.deadline = deadline }()
			return s.wake(at, wall, paused, l)
		}
	},
	"a held probe counts": func(r *silenceRules) { r.held = func(s *silence) { s.deadline = 0 } },
	"a held probe has a deadline": func(r *silenceRules) {
		r.held = func(s *silence) { s.probes = max(s.probes-1, 0) }
	},
	"a Check has no deadline": func(r *silenceRules) {
		r.began = func(s *silence, at link.Instant, a action) time.Duration {
			a.must = false
			return s.began(at, a)
		}
	},
	"a later probe moves the deadline": func(r *silenceRules) {
		r.began = func(s *silence, at link.Instant, a action) time.Duration {
			if a.must {
				s.deadline = 0
			}
			return s.began(at, a)
		}
	},
	"a later probe outlives the deadline": func(r *silenceRules) {
		r.began = func(s *silence, at link.Instant, a action) time.Duration {
			s.began(at, a)
			return a.answerWithin
		}
	},
	"no look is due while an answer is awaited": func(r *silenceRules) {
		r.next = func(s *silence, at link.Instant, l limits) action {
			if s.probes > 0 {
				return action{}
			}
			return s.next(at, l)
		}
	},
	"a look does not wait": func(r *silenceRules) {
		r.next = func(s *silence, at link.Instant, l limits) action {
			a := s.next(at, l)
			a.wait = 0
			return a
		}
	},
	"a wait for an answer has no pulse": func(r *silenceRules) {
		r.next = func(s *silence, at link.Instant, l limits) action {
			a := s.next(at, l)
			if s.probes > 0 {
				a.wait = max(a.wait, l.probeAfter)
			}
			return a
		}
	},
	"a written probe shows nothing": func(r *silenceRules) {
		r.wrote = func(s *silence, at link.Instant, a action) { s.gaveWay(at, a) }
	},
}
