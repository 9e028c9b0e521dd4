package subscription

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
)

// This file walks every state that a flow can reach with a venue, breadth first. Time passes in steps of half the
// timeout, which can double once.

// flowWorld is what the walk visits: the flow, the requests with what the venue does with them, and what has happened.
type flowWorld struct {
	list, late [flowSlots]trip
	window     int
	suspect    uint64
	patience   time.Duration

	again  int8 // how many expired requests are to be made again
	probes int8 // requests made since an answer was missing and none has come, or -1
	quiet  int8 // steps since the last answer
	missed int8 // steps since an answer was missing, while there was none since
	wrong  string
}

// trip is a request.
type trip struct {
	number         uint64 // among the requests that the walk remembers, from 1 on, or 0 without a request
	state          phase
	written, since int8 // steps ago
	passed         bool
	lost           bool // the venue has lost the request, or the answer
	overtaken      bool // a later request was answered before it
}

const (
	flowSlots   = 2*flowLimit - 1
	flowLimit   = 2 // Options.InFlight
	flowTimeout = maxPatience / 2
	flowStep    = flowTimeout / 2
	longPast    = int8(maxPatience / flowStep) // steps after which more time makes no difference
)

// flowNow is the time of each state: as time passes, each instant moves back.
var flowNow = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// flowRules are the methods of a flow; a mistake replaces one.
type flowRules struct {
	hasRoom  func(f *flow[int]) bool
	add      func(f *flow[int], r *request[int], again bool)
	wrote    func(f *flow[int], r *request[int], now time.Time)
	answered func(f *flow[int], r *request[int], whole bool, now time.Time)
	expire   func(f *flow[int], now time.Time) *request[int]
	missed   func(f *flow[int], r *request[int], now time.Time)
}

var trueFlow = flowRules{
	hasRoom:  (*flow[int]).hasRoom,
	add:      (*flow[int]).add,
	wrote:    (*flow[int]).wrote,
	answered: (*flow[int]).answered,
	expire:   (*flow[int]).expire,
	missed:   (*flow[int]).missed,
}

// flowVenue says what the venue does.
type flowVenue struct {
	inOrder bool // it answers in order, each request within the timeout after the one before
	loses   bool // it may lose a request, and does not answer late
}

// flowRun is a flow at work: between two states it has requests and times.
type flowRun struct {
	w     flowWorld
	f     flow[int]
	trips map[*request[int]]*trip
}

// load makes the flow of a state.
func (w flowWorld) load() *flowRun {
	x := &flowRun{w: w, trips: map[*request[int]]*trip{}}
	x.f = newFlow[int](&patience{least: flowTimeout, now: w.patience}, flowLimit)
	x.f.window, x.f.suspect = w.window, w.suspect
	load := func(trips []trip) (list []*request[int]) {
		for _, t := range trips {
			if t.number == 0 {
				break
			}
			r := &request[int]{number: t.number, state: t.state, passed: t.passed}
			if t.state >= phaseWritten {
				r.written = flowNow.Add(-time.Duration(t.written) * flowStep)
				r.since = flowNow.Add(-time.Duration(t.since) * flowStep)
			}
			list, x.trips[r] = append(list, r), &t
			x.f.made = max(x.f.made, t.number)
		}
		return list
	}
	x.f.list, x.f.late = load(w.list[:]), load(w.late[:])
	x.f.made = max(x.f.made, w.suspect)
	return x
}

// store returns the state. The numbers of the requests become 1, 2 and so on.
func (x *flowRun) store() flowWorld {
	w := x.w
	numbers := []uint64{}
	for _, r := range slices.Concat(x.f.list, x.f.late) {
		numbers = append(numbers, r.number)
	}
	slices.Sort(numbers)
	rank := func(number uint64) (n uint64) { // how many requests are not newer
		for _, other := range numbers {
			if other <= number {
				n++
			}
		}
		return n
	}
	store := func(list []*request[int], trips *[flowSlots]trip) {
		*trips = [flowSlots]trip{}
		if len(list) > flowSlots {
			w.wrong = "more requests than twice InFlight"
			return
		}
		for i, r := range list {
			t := *x.trips[r]
			t.number, t.state, t.passed = rank(r.number), r.state, r.passed
			if r.state >= phaseWritten && !r.written.IsZero() {
				t.written = min(int8(flowNow.Sub(r.written)/flowStep), longPast)
				t.since = min(int8(flowNow.Sub(r.since)/flowStep), longPast)
			}
			trips[i] = t
		}
	}
	store(x.f.list, &w.list)
	store(x.f.late, &w.late)
	w.window, w.suspect, w.patience = x.f.window, rank(x.f.suspect), x.f.patience.now
	return w
}

// steps returns what can happen in w.
func (w flowWorld) steps(venue flowVenue, rules flowRules) (list []walk.Step[flowWorld]) {
	step := func(event string, free bool, do func(x *flowRun)) {
		x := w.load()
		do(x)
		list = append(list, walk.Step[flowWorld]{Event: event, Free: free, State: x.store()})
	}
	x := w.load()
	if x.f.list == nil && w.late != [flowSlots]trip{} { // forget old requests, so that there are fewer states
		step("forget", false, func(x *flowRun) { x.f.late = nil })
	}
	room := rules.hasRoom(&x.f)
	if w.probes == 0 && !room && len(x.f.list) < flowSlots {
		step("no room", false, func(x *flowRun) { x.w.wrong = "after a missing answer no request may be made" })
	}
	if room {
		step("make", false, func(x *flowRun) { x.make(rules) })
	}
	for i := range x.f.list {
		t := w.list[i]
		switch {
		case t.state == phaseUnsent && w.writesNext(t):
			step(fmt.Sprint("write ", t.number), true, func(x *flowRun) { rules.wrote(&x.f, x.f.list[i], flowNow) })
		case t.state == phaseWritten && venue.loses && !t.lost:
			step(fmt.Sprint("lose ", t.number), false, func(x *flowRun) { x.trips[x.f.list[i]].lost = true })
		}
		if !t.lost && (t.state == phaseWritten || w.writesNext(t)) && (!venue.inOrder || t.number == w.oldest()) {
			step(fmt.Sprint("answer ", t.number), false, func(x *flowRun) { x.answer(x.f.list[i], rules) })
		}
	}
	for i, r := range x.f.late {
		if !w.late[i].lost {
			step(fmt.Sprint("late answer ", r.number), false, func(x *flowRun) {
				r := x.f.late[i]
				x.answer(r, rules)
				x.f.late = slices.Delete(x.f.late, i, i+1)
			})
		}
	}
	if !venue.inOrder || w.works() < int8(flowTimeout/flowStep)-1 {
		step("tick", true, func(x *flowRun) { x.tick(venue, rules) })
	}
	return list
}

// writesNext reports whether t is the request that is being written: one at a time is.
func (w flowWorld) writesNext(t trip) bool {
	return t.state == phaseUnsent && !slices.ContainsFunc(w.list[:], func(other trip) bool {
		return other.number > 0 && other.number < t.number && other.state == phaseUnsent
	})
}

// works returns how long a venue that answers in order has worked on the oldest request.
func (w flowWorld) works() int8 {
	for _, t := range w.list {
		if t.number > 0 && t.number == w.oldest() && t.state == phaseWritten {
			return min(w.quiet, t.written)
		}
	}
	return 0
}

// oldest returns the number of the oldest request in flight.
func (w flowWorld) oldest() uint64 {
	oldest := w.list[0].number
	for _, t := range w.list {
		if t.number > 0 {
			oldest = min(oldest, t.number)
		}
	}
	return oldest
}

func (x *flowRun) make(rules flowRules) {
	r := &request[int]{state: phaseUnsent}
	x.trips[r] = &trip{}
	rules.add(&x.f, r, x.w.again > 0)
	x.w.again = max(x.w.again-1, 0)
	if x.w.probes >= 0 {
		if x.w.probes++; x.w.probes > 1 {
			x.w.wrong = "two requests without an answer after a missing one"
		}
	}
}

func (x *flowRun) answer(r *request[int], rules flowRules) {
	rules.answered(&x.f, r, true, flowNow)
	for _, other := range x.f.list {
		if t := x.trips[other]; other.number < r.number && other.state == phaseWritten {
			t.overtaken = true
		}
	}
	if slices.Contains(x.f.list, r) {
		x.f.forget(r)
	}
	x.w.probes, x.w.quiet, x.w.missed = -1, 0, 0
}

// tick lets time pass, and then requests expire.
func (x *flowRun) tick(venue flowVenue, rules flowRules) {
	for r := range x.trips {
		if r.state >= phaseWritten && !r.written.IsZero() {
			r.written, r.since = r.written.Add(-flowStep), r.since.Add(-flowStep)
		}
	}
	x.w.quiet = min(x.w.quiet+1, longPast)
	if x.w.probes >= 0 {
		x.w.missed = min(x.w.missed+1, longPast)
	}
	patience := x.f.patience.now
	for {
		first := slices.IndexFunc(x.f.list, func(r *request[int]) bool { return r.state == phaseWritten })
		var oldest *request[int]
		if first >= 0 {
			oldest = x.f.list[first]
		}
		r := rules.expire(&x.f, flowNow)
		if r == nil {
			return
		}
		t := x.trips[r]
		if r != oldest && !t.overtaken {
			x.w.wrong = "a request expires that is neither the oldest nor passed"
		}
		if time.Duration(x.w.quiet)*flowStep < flowTimeout && !t.overtaken {
			x.w.wrong = "a request expires although the venue works"
		}
		if x.w.probes >= 0 && time.Duration(x.w.missed)*flowStep < patience && !t.overtaken {
			x.w.wrong = "a request expires too soon after another"
		}
		x.w.again = min(x.w.again+1, flowLimit)
		rules.missed(&x.f, r, flowNow)
		if !t.overtaken {
			x.w.probes, x.w.missed = 0, 0
			patience = x.f.patience.now
		}
		if venue.loses {
			x.f.late = nil
		} else if len(x.f.late) > 1 { // fewer states
			x.f.late = x.f.late[1:]
		}
	}
}

func (w flowWorld) broken() string {
	switch {
	case w.wrong != "":
		return w.wrong
	case w.patience < flowTimeout || w.patience > maxPatience:
		return "a timeout that is too short or too long"
	case w.window < 1 || w.window > flowLimit:
		return "a window that is too small or too large"
	}
	return ""
}

func walkFlow(venue flowVenue, rules flowRules) *walk.Walk[flowWorld] {
	inFlight := func(w flowWorld) bool {
		return slices.ContainsFunc(w.list[:], func(t trip) bool { return t.state == phaseWritten })
	}
	return walk.All(walk.Space[flowWorld]{
		First:  flowWorld{window: flowLimit, patience: flowTimeout, probes: -1},
		Steps:  func(w flowWorld) []walk.Step[flowWorld] { return w.steps(venue, rules) },
		Broken: flowWorld.broken,
		Ways: []walk.Way[flowWorld]{
			{Wrong: "a request waits for ever", Goal: func(w flowWorld) bool { return venue.inOrder || !inFlight(w) }},
			{
				Wrong: "the flow never comes back to what it was",
				Goal: func(w flowWorld) bool {
					return w.list[0].number == 0 && w.window == flowLimit && w.patience == flowTimeout
				},
				By: func(walk.Step[flowWorld]) bool { return true },
			},
		},
	})
}

var flowVenues = map[string]flowVenue{"in order": {inOrder: true}, "any order": {}, "losses": {loses: true}}

func TestFlowKeepsPromisesInEachState(t *testing.T) {
	walk.SkipWithRace(t)
	for name, venue := range flowVenues {
		w := walkFlow(venue, trueFlow)
		assert.Empty(t, w.Wrong, name)
		t.Logf("%s: %d states, %d edges", name, len(w.States), w.Edges)
		expired := slices.ContainsFunc(w.States, func(w flowWorld) bool { return w.probes >= 0 })
		assert.Equal(t, !venue.inOrder, expired, name)
	}
}

// Each mistake is planted in the flow alone, and the walk finds it.
func TestFlowWalkFindsEachMistake(t *testing.T) {
	walk.SkipWithRace(t)
	for _, name := range slices.Sorted(maps.Keys(flowMistakes)) {
		t.Run(name, func(t *testing.T) {
			rules := trueFlow
			flowMistakes[name](&rules)
			found := ""
			for _, venue := range []string{"in order", "any order", "losses"} {
				if found = walkFlow(flowVenues[venue], rules).Wrong; found != "" {
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}

// flowMistakes change one rule of the flow.
var flowMistakes = map[string]func(*flowRules){
	"the clock starts when the request is written": func(r *flowRules) {
		r.answered = func(f *flow[int], r *request[int], whole bool, now time.Time) {
			f.answered(r, whole, now)
			for _, other := range f.list {
				other.since = other.written
			}
		}
	},
	"each request expires": func(r *flowRules) {
		r.expire = func(f *flow[int], now time.Time) *request[int] {
			for _, other := range f.list {
				passed := other.passed
				other.passed = true
				due := f.due(other)
				if other.passed = passed; !due.IsZero() && !now.Before(due) {
					f.forget(other)
					f.late = append(f.late, other)
					return other
				}
			}
			return nil
		}
	},
	"the clocks do not start again": func(r *flowRules) {
		r.missed = func(f *flow[int], r *request[int], now time.Time) {
			old := slices.Clone(f.list)
			since := map[*request[int]]time.Time{}
			for _, other := range old {
				since[other] = other.since
			}
			f.missed(r, now)
			for _, other := range old {
				other.since = since[other]
			}
		}
	},
	"the window stays": func(r *flowRules) {
		r.missed = func(f *flow[int], r *request[int], now time.Time) {
			window := f.window
			f.missed(r, now)
			f.window = window
		}
	},
	"the window never opens": func(r *flowRules) {
		r.answered = func(f *flow[int], r *request[int], whole bool, now time.Time) {
			window := f.window
			f.answered(r, whole, now)
			f.window = window
		}
	},
	"the window has no limit": func(r *flowRules) {
		r.answered = func(f *flow[int], r *request[int], whole bool, now time.Time) {
			f.answered(r, whole, now)
			f.window++
		}
	},
	"a lost request takes room": func(r *flowRules) {
		r.hasRoom = func(f *flow[int]) bool { return len(f.list) < f.window }
	},
	"the timeout has no limit": func(r *flowRules) {
		r.missed = func(f *flow[int], r *request[int], now time.Time) {
			before := f.patience.now
			f.missed(r, now)
			if !r.passed {
				f.patience.now = 2 * before
			}
		}
	},
	"the timeout never comes back": func(r *flowRules) {
		r.answered = func(f *flow[int], r *request[int], whole bool, now time.Time) {
			before := f.patience.now
			f.answered(r, whole, now)
			f.patience.now = max(f.patience.now, before)
		}
	},
	"the timeout is what the last answer took": func(r *flowRules) {
		r.answered = func(f *flow[int], r *request[int], whole bool, now time.Time) {
			f.answered(r, whole, now)
			f.patience.now = now.Sub(r.written)
		}
	},
	"a passed request waits": func(r *flowRules) {
		r.answered = func(f *flow[int], r *request[int], whole bool, now time.Time) {
			f.answered(r, whole, now)
			for _, other := range f.list {
				other.passed = false
			}
		}
	},
	"a request that was passed slows the others down": func(r *flowRules) {
		r.missed = func(f *flow[int], r *request[int], now time.Time) {
			passed := r.passed
			r.passed = false
			f.missed(r, now)
			r.passed = passed
		}
	},
}
