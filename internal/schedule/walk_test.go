package schedule

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
	"github.com/redial-go/redial/reconnect/backoff"
)

// This file walks every state that a Dials and its supervisor can reach together, breadth first. world_test.go
// says what the supervisor does, and what can happen to it.

var (
	retry        = named{name: "fails", Verdict: backoff.Verdict{Class: backoff.ClassRetry}}
	told         = named{name: "is told to wait", Verdict: backoff.Verdict{Class: backoff.ClassOverload}, told: true}
	forGood      = named{name: "fails for good", Verdict: backoff.Verdict{Class: backoff.ClassStop}, told: true}
	fewVerdicts  = []named{retry, told, forGood}
	manyVerdicts = []named{
		retry, told, forGood,
		{name: "is refused", Verdict: backoff.Verdict{Class: backoff.ClassRetry, Refused: true}},
		{name: "overload", Verdict: backoff.Verdict{Class: backoff.ClassOverload}},
		{name: "credentials", Verdict: backoff.Verdict{Class: backoff.ClassRefresh}},
		{name: "credentials, is told to wait", Verdict: backoff.Verdict{Class: backoff.ClassRefresh}, told: true},
		{name: "slow", Verdict: backoff.Verdict{Class: backoff.ClassSlow}},
		{name: "slow at the second", Verdict: backoff.Verdict{Class: backoff.ClassSlow, Lenient: true}},
	}
	manySessions = append([]named{{name: "protocol", Verdict: backoff.Verdict{Class: backoff.ClassRetry, NoCredit: true}}}, manyVerdicts...)
)

// configs are what is walked, the small ones first.
var configs = []struct {
	name string
	config
}{
	{"one connection", config{one: true, oldest: 3, verdicts: manyVerdicts, sessions: manySessions}},
	{"a full backlog, swap and gate", config{ifFull: true, swap: true, gate: true, verdicts: manyVerdicts[2:4], sessions: fewVerdicts[:1]}},
	{"a full backlog", config{ifFull: true, verdicts: []named{retry, forGood, manyVerdicts[3]}, sessions: fewVerdicts[:1]}},
	{"two dials", config{verdicts: manyVerdicts, sessions: manySessions}},
	{"gate", config{gate: true, verdicts: manyVerdicts, sessions: manySessions}},
	{"swap", config{swap: true, verdicts: manyVerdicts, sessions: manySessions}},
	{"gives up", config{giveUp: 2, oldest: 3, verdicts: fewVerdicts, sessions: manySessions}},
}

func walkAll(c config, r rules) *walk.Walk[world] {
	x := newWalker(c, r)
	return walk.All(walk.Space[world]{
		First: x.first(), Steps: x.steps, Broken: func(w world) string { return w.wrong },
		Ways: []walk.Way[world]{{
			Wrong: "no dial follows",
			Goal: func(w world) bool {
				return w.up >= 0 || w.done != goesOn || w.slots[0].at == onWay && !w.slots[0].kept || w.slots[1].at == onWay && !w.slots[1].kept
			},
		}},
	})
}

// With REDIAL_LONG=1 the limits are longer, and all that makes a config large comes together.
func TestEveryReachableStateOfTheDialsKeepsItsPromises(t *testing.T) {
	walk.SkipWithRace(t)
	all := configs
	if os.Getenv("REDIAL_LONG") != "" {
		all = slices.Clone(configs)
		for i := range all {
			c := &all[i].config
			c.hang, c.keep, c.told, c.oldest = 3, 7, 3, 4
		}
		all = append(all, all[5])
		all[len(all)-1].name, all[len(all)-1].gate = "swap and gate", true
	}
	for _, c := range all {
		w := walkAll(c.config, trueRules)
		assert.Empty(t, w.Wrong, c.name)
		t.Logf("%s: %d states, %d edges", c.name, len(w.States), w.Edges)
		// The walk comes to each end, and to each kind of dial.
		ends, dials := map[end]bool{}, map[slot]bool{}
		for _, s := range w.States {
			ends[s.done] = true
			for _, x := range s.slots {
				dials[slot{at: x.at, kept: x.kept}] = true
			}
		}
		assert.Len(t, ends, 3, c.name)
		assert.Equal(t, !c.one, dials[slot{at: shakes, kept: true}], c.name)
		assert.Equal(t, !c.one, dials[slot{at: onWay, kept: true}], "%s: kept for a kick", c.name)
		assert.Equal(t, c.gate, dials[slot{at: atGate}], c.name)
	}
}

// Each mistake is planted in the Dials alone, and the walk finds it.
func TestTheWalkOfTheDialsFindsEachMistake(t *testing.T) {
	walk.SkipWithRace(t)
	require.GreaterOrEqual(t, len(mistakes), 20)
	for _, name := range slices.Sorted(maps.Keys(mistakes)) {
		t.Run(name, func(t *testing.T) {
			rules := trueRules
			mistakes[name](&rules)
			found := ""
			for _, c := range configs {
				if found = walkAll(c.config, rules).Wrong; found != "" {
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}

// mistakes change one rule of the Dials.
var mistakes = map[string]func(*rules){
	"forget the dial that is kept": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			a := d.Next(now)
			if a.Do == DoKeep {
				d.kept = none
			}
			return a
		}
	},
	"a full backlog is not looked at": func(r *rules) {
		r.connected = func(d *Dials, which int, now time.Time) {
			d.dials[which].ifFull = false
			d.Connected(which, now)
		}
	},
	"the time at a gate makes a dial late": func(r *rules) {
		r.began = func(*Dials, int, time.Time) {}
	},
	"a late dial takes the place of a late one": func(r *rules) {
		r.connected = func(d *Dials, which int, now time.Time) {
			d.Connected(which, now)
			if x := &d.dials[which]; which != int(d.kept) && x.late {
				x.swap = true
			}
		}
	},
	"a late dial takes the place of one that is not connected": func(r *rules) {
		r.connected = func(d *Dials, which int, now time.Time) {
			d.Connected(which, now)
			if x := &d.dials[which]; d.kept != none && d.dials[d.kept].state == connecting && x.late {
				x.swap = true
			}
		}
	},
	"a dial that was not connected does not show a full backlog": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			if d.Failed(which, v, now); d.outage.hang != nil {
				d.outage.hang.full = false
			}
		}
	},
	"begin a third dial": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			if d.search != nil && d.kept != none && d.dials[1-d.kept].state == shaking && d.due.IsZero() {
				d.due = now
			}
			return d.Next(now)
		}
	},
	"a dial that is not connected hangs": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			a := d.Next(now)
			if a.Do == DoDial {
				d.Connected(a.Which, now)
			}
			return a
		}
	},
	"the clock of the handshake starts with the dial": func(r *rules) {
		r.connected = func(d *Dials, which int, now time.Time) { d.Connected(which, now.Add(-unit)) }
	},
	"the limit of a kept dial that connects is that of any dial": func(r *rules) {
		r.connected = func(d *Dials, which int, now time.Time) {
			limit := d.dials[which].limit
			d.Connected(which, now)
			d.dials[which].limit = limit
		}
	},
	"keep for ever": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			a := d.Next(now)
			if a.Do == DoKeep {
				d.dials[a.Which].limit *= 2
			}
			return a
		}
	},
	"never swap": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			a := d.Next(now)
			if a.Do == DoDial {
				d.dials[a.Which].swap = false
			}
			return a
		}
	},
	"hold two handshakes with one connection": func(r *rules) {
		r.kick = func(d *Dials, now time.Time) bool {
			if d.phase == down && d.underWay() {
				d.due = now
			}
			return d.Kick(now)
		}
	},
	"a kick cuts what a server told us": func(r *rules) {
		r.kick = func(d *Dials, now time.Time) bool {
			if d.search != nil {
				d.hold = time.Time{}
			}
			return d.Kick(now)
		}
	},
	"a kick during a dial is forgotten": func(r *rules) {
		r.kick = func(d *Dials, now time.Time) bool {
			kicked := d.Kick(now)
			if d.search != nil {
				d.kicked = false
			}
			return kicked
		}
	},
	"a kick outlives the session": func(r *rules) {
		r.ended = func(d *Dials, v backoff.Verdict, ready time.Duration, now time.Time) bool {
			if d.search == nil {
				d.search = &search{kept: none, kicked: true}
			}
			return d.Ended(v, ready, now)
		}
	},
	"the wait of a server ends with the wait of the policy": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			d.Failed(which, v, now)
			if wait := d.History().Verdict.RetryAfter; d.search != nil && wait > 0 && !d.due.IsZero() {
				d.due = now.Add(wait)
			}
		}
	},
	"a dial beside another is not told to wait": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			if d.dials[1-which].state != free {
				v.RetryAfter = 0
			}
			d.Failed(which, v, now)
		}
	},
	"a loss is not told to wait": func(r *rules) {
		r.ended = func(d *Dials, v backoff.Verdict, ready time.Duration, now time.Time) bool {
			stable := d.Ended(v, ready, now)
			d.hold = time.Time{}
			return stable
		}
	},
	"a kept dial that fails begins another": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			kept := which == int(d.kept)
			if d.Failed(which, v, now); kept && d.due.IsZero() {
				d.due = now
			}
		}
	},
	"nobody dials when the dial beside has failed": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			kept := d.kept
			if d.Failed(which, v, now); kept != none && kept != int8(which) {
				d.due = time.Time{}
			}
		}
	},
	"a dial that was taken back counts": func(r *rules) {
		r.withdrawn = func(d *Dials, which int, now time.Time) {
			d.Withdrawn(which, now)
			d.outage.tries++
		}
	},
	"a dial that was taken back keeps its place": func(r *rules) {
		r.withdrawn = func(d *Dials, which int, now time.Time) {
			state := d.dials[which].state
			d.Withdrawn(which, now)
			d.dials[which].state = state
		}
	},
	"the other dial is left when one is answered": func(r *rules) {
		r.answered = func(d *Dials, which int, now time.Time) {
			if d.Answered(which, now); d.search != nil {
				d.forget()
			}
		}
	},
	"the other dial is left after the end": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			if d.phase == stopped {
				d.dials = [2]dial{}
			}
			return d.Next(now)
		}
	},
	"dial after a stop": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			if v.Class == backoff.ClassStop {
				v.Class = backoff.ClassSlow
			}
			d.Failed(which, v, now)
		}
	},
	"a stop is a policy that gave up": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			d.Failed(which, v, now)
			d.gaveUp = d.phase == stopped
		}
	},
	"a dial that is answered ends the outage": func(r *rules) {
		r.answered = func(d *Dials, which int, now time.Time) {
			d.Answered(which, now)
			d.outage.Stable(now)
		}
	},
	"a brief session earns": func(r *rules) {
		r.ended = func(d *Dials, v backoff.Verdict, ready time.Duration, now time.Time) bool {
			if ready == 0 {
				ready = unit
			}
			return d.Ended(v, ready, now)
		}
	},
	"a session that broke the protocol earns": func(r *rules) {
		r.ended = func(d *Dials, v backoff.Verdict, ready time.Duration, now time.Time) bool {
			v.NoCredit = false
			return d.Ended(v, ready, now)
		}
	},
	"a session shorter than the wait before it is stable": func(r *rules) {
		r.ended = func(d *Dials, v backoff.Verdict, ready time.Duration, now time.Time) bool {
			d.waited = 0
			return d.Ended(v, ready, now)
		}
	},
	"ask for new credentials for ever": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			d.outage.class = backoff.ClassOK
			d.Failed(which, v, now)
		}
	},
	"the credentials are forgotten when a handshake hangs": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			a := d.Next(now)
			if a.Do == DoKeep {
				d.outage.renew = false
			}
			return a
		}
	},
	"any session ends a row of slow verdicts": func(r *rules) {
		r.ended = func(d *Dials, v backoff.Verdict, ready time.Duration, now time.Time) bool {
			d.outage.slows = 0
			return d.Ended(v, ready, now)
		}
	},
	"a handshake that hangs ends a row of slow verdicts": func(r *rules) {
		r.next = func(d *Dials, now time.Time) Action {
			a := d.Next(now)
			if a.Do == DoKeep {
				d.outage.slows = 0
			}
			return a
		}
	},
	"the hang goes on when its dial has failed": func(r *rules) {
		r.failed = func(d *Dials, which int, v backoff.Verdict, now time.Time) {
			h := d.outage.hang
			if d.Failed(which, v, now); d.phase == down {
				d.outage.hang = h
			}
		}
	},
}
