package handover

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
)

// This file walks every state that two supervisors and a Machine can reach together, breadth first.
// world_test.go says what the supervisors do, and what can happen to them.

// walkAll walks from the first state of a handover, and stops at the first broken invariant.
func walkAll(overlap Overlap, rules rules) *walk.Walk[world] {
	return walk.All(walk.Space[world]{
		First:  newWorld(overlap),
		Steps:  func(w world) []walk.Step[world] { return w.steps(rules) },
		Broken: world.broken,
		Ways:   []walk.Way[world]{{Wrong: "a supervisor waits for ever", Goal: func(w world) bool { return !w.waits() }}},
	})
}

func TestEveryReachableStateKeepsTheInvariants(t *testing.T) {
	walk.SkipWithRace(t)
	for name, overlap := range overlaps {
		w := walkAll(overlap, trueRules)
		assert.Empty(t, w.Wrong, name)
		t.Logf("%s: %d states, %d edges", name, len(w.States), w.Edges)
		// The walk comes to each end, and through each stage.
		stages := map[stage]bool{}
		ends := map[end]bool{}
		for _, state := range w.States {
			stages[state.m.stage], ends[state.end()] = true, true
		}
		for _, s := range []stage{due, making, over, dropped} {
			assert.True(t, stages[s], "%s: stage %d", name, s)
		}
		assert.Equal(t, overlap != BreakFirst, stages[led] && stages[failed], name)
		assert.Equal(t, map[end]bool{goesOn: true, oneSession: true, connEnded: true}, ends, name)
	}
}

var overlaps = map[string]Overlap{"hold": Hold, "mix": Mix, "break first": BreakFirst}

// Each mistake is planted in the machine alone, and the walk finds it.
func TestTheWalkFindsEachMistake(t *testing.T) {
	walk.SkipWithRace(t)
	require.GreaterOrEqual(t, len(mistakes), 10)
	for _, name := range slices.Sorted(maps.Keys(mistakes)) {
		t.Run(name, func(t *testing.T) {
			rules := trueRules
			mistakes[name](&rules)
			found := ""
			for _, overlap := range []Overlap{BreakFirst, Hold, Mix} { // the small one first
				if w := walkAll(overlap, rules); w.Wrong != "" {
					found = w.Wrong
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}

// mistakes change one rule of the machine.
var mistakes = map[string]func(*rules){
	"lead twice": func(r *rules) {
		r.nextReady = func(m *Machine, resumed, behind bool) Lead {
			if lead := m.NextReady(resumed, behind); lead != LeadKeeps {
				return lead
			}
			return LeadTakes
		}
	},
	"lead after giving up": func(r *rules) {
		r.nextReady = func(m *Machine, resumed, behind bool) Lead {
			if m.stage == failed {
				m.stage = making
			}
			return m.NextReady(resumed, behind)
		}
	},
	"forget the held": func(r *rules) {
		r.release = func(m *Machine, left int) bool { return m.Release(0) }
	},
	"release before the seam": func(r *rules) {
		r.oldLost = func(m *Machine, how Ending, unread bool) bool {
			defer m.Release(0)
			return m.OldLost(how, unread)
		}
	},
	"hold nothing": func(r *rules) {
		r.holds = func(*Machine) bool { return false }
	},
	"hold for a side that is kept beyond the handover": func(r *rules) {
		r.holds = func(m *Machine) bool { return m.Holds() || m.stage == over }
	},
	"hold for ever": func(r *rules) {
		r.holds = func(*Machine) bool { return true }
	},
	"drop a handover that is due": func(r *rules) {
		r.begin = func(m *Machine, ending bool) Begin {
			defer func() { m.stage = dropped }()
			m.stage = dropped
			return BeginNothing
		}
	},
	"end a handover that is due when the session becomes ready": func(r *rules) {
		r.bridged = func(m *Machine) bool { // as the test of a session that has just become ready
			m.stage = over
			return true
		}
	},
	"begin although the old session is lost": func(r *rules) {
		r.begin = func(m *Machine, _ bool) Begin { return m.Begin(false) }
	},
	"dial before the old session is closed": func(r *rules) {
		r.begin = func(m *Machine, ending bool) Begin {
			if m.Begin(ending) == BeginNothing {
				return BeginNothing
			}
			return BeginDial
		}
	},
	"both redial": func(r *rules) {
		r.oldEnded = func(m *Machine, stop bool) Heir {
			if heir := m.OldEnded(stop); heir != HeirNextLeads {
				return heir
			}
			return HeirOld
		}
	},
	"nobody redials": func(r *rules) {
		r.oldEnded = func(m *Machine, stop bool) Heir {
			if m.OldEnded(stop); m.stage == failed {
				return HeirNext
			}
			return HeirNext
		}
	},
	"the redial rests": func(r *rules) {
		r.oldEnded = func(m *Machine, stop bool) Heir {
			m.resting = false
			return m.OldEnded(stop)
		}
	},
	"report twice": func(r *rules) {
		r.nextDone = func(m *Machine) bool {
			m.NextDone()
			return false
		}
	},
	"report nothing": func(r *rules) {
		r.oldDone = func(m *Machine) OldDone {
			m.OldDone()
			return OldWasLast
		}
	},
	"do not wait for the next supervisor": func(r *rules) {
		r.oldDone = func(m *Machine) OldDone {
			if done := m.OldDone(); done != OldAwaits {
				return done
			}
			return OldWasLast
		}
	},
	"do not wait for a next supervisor that has failed": func(r *rules) {
		r.oldDone = func(m *Machine) OldDone {
			if m.stage == failed {
				return OldWasLast
			}
			return m.OldDone()
		}
	},
	"keep the old session when no more can be held": func(r *rules) {
		r.heldFull = func(*Machine) bool { return false }
	},
	"the seam of the next session does not wait": func(r *rules) {
		r.nextLost = func(m *Machine, ready bool) Loss { return LossForget }
	},
	"overlap although something is missing": func(r *rules) {
		r.oldLost = func(m *Machine, how Ending, unread bool) bool {
			defer func() { m.missing = false }()
			return m.OldLost(how, unread)
		}
	},
	"forget that the stream was resumed": func(r *rules) {
		r.nextReady = func(m *Machine, _, behind bool) Lead { return m.NextReady(false, behind) }
	},
	"leave the redial to a next supervisor that has failed": func(r *rules) {
		r.oldEnded = func(m *Machine, stop bool) Heir {
			if m.stage == failed {
				return HeirNext
			}
			return m.OldEnded(stop)
		}
	},
	"planned although the old session has died": func(r *rules) {
		r.planned = func(m *Machine) bool { return !m.ready }
	},
}
