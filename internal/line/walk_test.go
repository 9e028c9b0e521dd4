package line

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/internal/walk"
	"github.com/redial-go/redial/reconnect/backoff"
)

// This file walks every state that a Queue and its gate can reach together, breadth first. world_test.go says
// what the gate does, and what can happen to it.

// configs are what is walked, the small ones first.
var configs = []struct {
	name string
	config
}{
	{"one at a time", config{Options: Options{Concurrent: 1}}},
	{"two at a time", config{Options: Options{Concurrent: 2}}},
	{"no limit", config{Options: Options{Concurrent: -1}}},
	{"no policy for the probes", config{Options: Options{Concurrent: 1}, tired: true}},
	{"a dial per unit", config{Options: Options{Concurrent: 2, Burst: 1}, halves: 2}},
	{"a dial in two units", config{Options: Options{Concurrent: 2, Burst: 2}, halves: 1}},
}

func walkAll(c config, r rules) *walk.Walk[world] {
	x := newWalker(c, r)
	out := func(w world) bool { return w.m.places == [tickets]place{} }
	by := func(event string) func(walk.Step[world]) bool {
		return func(s walk.Step[world]) bool { return s.Free || strings.HasSuffix(s.Event, event) }
	}
	return walk.All(walk.Space[world]{
		First: x.first(), Steps: x.steps, Broken: func(w world) string { return w.wrong },
		Ways: []walk.Way[world]{
			{Wrong: "not all dials are admitted, although each succeeds", Goal: out, By: by(": ok")},
			{Wrong: "not all dials are admitted, where each fails", Goal: out, By: by(": fails")},
			{Wrong: "not all dials are admitted, where each is told to wait", Goal: out, By: by("told to wait")},
			{Wrong: "not all dials are admitted, where each is told to wait long", Goal: out, By: by("told to wait long")},
			{Wrong: "not all dials are admitted, where each is refused as a caller", Goal: out, By: by("as a caller")},
			{Wrong: "not all dials are admitted, where each is cancelled", Goal: out, By: by("cancelled")},
		},
	})
}

// With REDIAL_LONG=1 the server tells us to wait longer, and tokens come more slowly.
func TestEveryReachableStateOfTheLineKeepsItsPromises(t *testing.T) {
	walk.SkipWithRace(t)
	all := configs
	if os.Getenv("REDIAL_LONG") != "" {
		all = slices.Clone(configs)
		for i := range all {
			all[i].told, all[i].long = 6, mostHold
		}
		last := all[len(all)-1]
		last.name, last.Burst, last.Concurrent = "a dial in two units, three at a time", 3, 3
		all = append(all, last)
	}
	for _, c := range all {
		w := walkAll(c.config, trueRules)
		assert.Empty(t, w.Wrong, c.name)
		t.Logf("%s: %d states, %d edges", c.name, len(w.States), w.Edges)
		// The walk comes to a full line, to each number of dials, and to probes.
		full, probes, most := false, false, int8(0)
		refusals, maxHold := never, int8(0)
		for _, s := range w.States {
			full = full || s.m.waiting == tickets
			probes = probes || slices.Contains(s.m.places[:], probing)
			most = max(most, s.m.under)
			refusals, maxHold = max(refusals, s.m.refusals), max(maxHold, s.m.maxHold)
		}
		assert.True(t, full && probes, c.name)
		assert.Equal(t, moment(small.refusalBurst+1)*paused, refusals, c.name)
		assert.EqualValues(t, mostHold, maxHold, c.name)
		assert.Equal(t, min(tickets, New(c.Options, nil).o.Concurrent), int(most), c.name)
	}
}

// Each mistake is planted in the Queue alone, and the walk finds it.
func TestTheWalkOfTheLineFindsEachMistake(t *testing.T) {
	walk.SkipWithRace(t)
	require.GreaterOrEqual(t, len(mistakes), 30)
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

// after returns a mistake that is made after Done.
func after(wrong func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time)) func(*rules) {
	return func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			q.Done(t, v, now)
			wrong(q, t, v, now)
			return q.down
		}
	}
}

// before returns a mistake that is made before Done.
func before(wrong func(q *Queue, t *Ticket, v *backoff.Verdict, now time.Time)) func(*rules) {
	return func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			wrong(q, t, &v, now)
			return q.Done(t, v, now)
		}
	}
}

// mistakes change one rule of the Queue.
var mistakes = map[string]func(*rules){
	"Done says that a host is up that is down": func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			return q.Done(t, v, now) && !t.Probe
		}
	},
	"the last come is the first": func(r *rules) {
		r.join = func(q *Queue, t *Ticket) { q.first = t }
	},
	"who leaves takes another along": func(r *rules) {
		r.leave = func(q *Queue, t *Ticket) bool {
			next := t.next
			left := q.Leave(t)
			if left && next != t {
				q.Leave(next)
			}
			return left
		}
	},
	"the first leaves, and the line ends": func(r *rules) {
		r.leave = func(q *Queue, t *Ticket) bool {
			first := q.first == t
			left := q.Leave(t)
			if first {
				q.first = nil
			}
			return left
		}
	},
	"who leaves goes on waiting": func(r *rules) {
		r.leave = func(q *Queue, t *Ticket) bool { return t.next != nil }
	},
	"one more than the limit": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			q.window++
			defer func() { q.window-- }()
			return q.Admit(now)
		}
	},
	"the next is forgotten when the server told us to wait": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			t, next := q.Admit(now)
			if q.hold.After(now) {
				next = time.Time{}
			}
			return t, next
		}
	},
	"the next is named too early": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			t, next := q.Admit(now)
			if next.After(now.Add(unit)) {
				next = next.Add(-unit)
			}
			return t, next
		}
	},
	"the next is named too late": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			t, next := q.Admit(now)
			if !next.IsZero() {
				next = next.Add(unit)
			}
			return t, next
		}
	},
	"who is not admitted pays": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			t, next := q.Admit(now)
			if t == nil && q.o.Rate > 0 && q.tokens >= 1 && q.waiting > 0 {
				q.tokens--
			}
			return t, next
		}
	},
	"nobody pays": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			t, next := q.Admit(now)
			if t != nil && q.o.Rate > 0 {
				q.tokens++
			}
			return t, next
		}
	},
	"a pause fills beyond the burst": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			q.o.Burst++
			defer func() { q.o.Burst-- }()
			return q.Admit(now)
		}
	},
	"every dial is a probe": func(r *rules) {
		r.admit = func(q *Queue, now time.Time) (*Ticket, time.Time) {
			t, next := q.Admit(now)
			if t != nil {
				t.Probe = true
			}
			return t, next
		}
	},
	"a cancelled dial keeps its permit": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassStop {
			q.under++
		}
	}),
	"a failed dial returns its permit twice": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassRetry {
			q.under--
		}
	}),
	"a host that is down has as many dials as ever": after(func(q *Queue, _ *Ticket, _ backoff.Verdict, _ time.Time) {
		if q.down {
			q.window = q.o.Concurrent
		}
	}),
	"a host that is back has as many dials as ever": after(func(q *Queue, t *Ticket, v backoff.Verdict, _ time.Time) {
		if t.Probe && !q.down {
			q.window = q.o.Concurrent
		}
	}),
	"the limit grows beyond its bound": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassOK && !q.down {
			q.window = min(q.window+1, unlimited)
		}
	}),
	"the limit grows when a dial is refused": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassSlow {
			q.window = min(q.window+1, q.o.Concurrent)
		}
	}),
	"the limit does not grow": before(func(q *Queue, _ *Ticket, v *backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassOK {
			v.Class = backoff.ClassSlow
		}
	}),
	"only a failure tells us to wait": before(func(q *Queue, _ *Ticket, v *backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassOK {
			v.RetryAfter = 0
		}
	}),
	"the last that told us to wait counts": before(func(q *Queue, _ *Ticket, v *backoff.Verdict, _ time.Time) {
		if v.RetryAfter > 0 {
			q.hold = time.Time{}
		}
	}),
	"an answer ends what another was told": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassOK {
			q.down = false
		}
	}),
	"all fail, and each counts": before(func(_ *Queue, t *Ticket, _ *backoff.Verdict, _ time.Time) { t.Probe = true }),
	"a probe comes when the server has told us": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if q.down && v.RetryAfter > 0 {
			q.failed, q.alone = q.hold, 0
		}
	}),
	"probes have no pace":    after(func(q *Queue, _ *Ticket, _ backoff.Verdict, now time.Time) { q.failed, q.alone = now, 0 }),
	"many that wait are one": after(func(q *Queue, _ *Ticket, _ backoff.Verdict, _ time.Time) { q.least = q.alone }),
	"many that wait get the bound for fewer": after(func(q *Queue, _ *Ticket, _ backoff.Verdict, _ time.Time) {
		if q.least < q.alone {
			q.least += unit
		}
	}),
	"the first wait of an outage is divided": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if q.down && v.RetryAfter == 0 && q.outage.History().N == 0 {
			q.least = unit
		}
	}),
	"the wait after a Retry-After is divided": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if q.down && v.RetryAfter > 0 {
			q.least = unit
		}
	}),
	"the next outage goes on where the last has ended": before(func(q *Queue, t *Ticket, v *backoff.Verdict, _ time.Time) {
		if v.Class == backoff.ClassRetry && !q.down {
			q.down, t.Probe = true, true
		}
	}),
	"the pace of the probes does not slow down": before(func(q *Queue, _ *Ticket, _ *backoff.Verdict, _ time.Time) {
		q.outage = schedule.Outage{}
	}),
	"a host that is down is idle": func(r *rules) {
		r.idle = func(q *Queue, now time.Time) bool {
			q.down = false
			q.window = q.o.Concurrent
			return q.Idle(now)
		}
	},
	"a host that told us to wait is idle": func(r *rules) {
		r.idle = func(q *Queue, now time.Time) bool {
			q.hold = time.Time{}
			return q.Idle(now)
		}
	},
	"no host is ever idle": func(r *rules) {
		r.idle = func(*Queue, time.Time) bool { return false }
	},
	"a refused caller holds all for its own wait": before(func(_ *Queue, _ *Ticket, v *backoff.Verdict, _ time.Time) {
		v.Caller = false
	}),
	"a refused caller is a success": before(func(_ *Queue, _ *Ticket, v *backoff.Verdict, _ time.Time) {
		if v.Caller {
			*v = backoff.Verdict{}
		}
	}),
	"refused callers are not counted": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Caller {
			q.refusals = time.Time{}
		}
	}),
	"a success takes no refusal off": func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			before := q.refusals
			down := q.Done(t, v, now)
			if v.Class == backoff.ClassOK && before.After(now) {
				q.refusals = before
			}
			return down
		}
	},
	"old refusals count": before(func(q *Queue, _ *Ticket, v *backoff.Verdict, now time.Time) {
		if v.Caller && !q.refusals.After(now) {
			q.refusals = now.Add(unit)
		}
	}),
	"many refused callers leave the limit": func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			window := q.window
			down := q.Done(t, v, now)
			if v.Caller && !down {
				q.window = window
			}
			return down
		}
	},
	"refused callers add up beyond the burst": after(func(q *Queue, _ *Ticket, v backoff.Verdict, _ time.Time) {
		if v.Caller && q.hold.After(q.lastDone) {
			q.refusals = q.refusals.Add(unit)
		}
	}),
	"the hold after a success does not double": before(func(q *Queue, _ *Ticket, _ *backoff.Verdict, _ time.Time) {
		q.maxHold = min(q.maxHold, q.limits.successHold)
	}),
	"a success does not limit the next hold": after(func(q *Queue, _ *Ticket, _ backoff.Verdict, _ time.Time) {
		q.maxHold = 0
	}),
	"a success does not cut a hold": func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			hold := q.hold
			down := q.Done(t, v, now)
			if hold.After(q.hold) {
				q.hold = hold
			}
			return down
		}
	},
	"a hold is cut and the wait of the policy is not": func(r *rules) {
		r.done = func(q *Queue, t *Ticket, v backoff.Verdict, now time.Time) bool {
			failed, alone, least := q.failed, q.alone, q.least
			down := q.Done(t, v, now)
			if v.Class == backoff.ClassOK {
				q.failed, q.alone, q.least = failed, alone, least
			}
			return down
		}
	},
	"a host that has let a dial through is idle": func(r *rules) {
		r.idle = func(q *Queue, now time.Time) bool {
			q.maxHold = 0
			return q.Idle(now)
		}
	},
}
