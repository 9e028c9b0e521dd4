package lead

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
)

// This file walks every state that a Turn can reach with the supervisor, the reader and the connection around it,
// breadth first. world_test.go says what they do.

// configs say what can happen in a walk, the small ones first.
var configs = []config{{things: 1, contexts: 1}, {things: 1, beside: true}, {things: 2}, {things: 2, keeps: true}}

func walkAll(c config, r rules) *walk.Walk[world] {
	x := &walker{config: c, r: r}
	prompt := func(s walk.Step[world]) bool { return s.Free && !strings.HasPrefix(s.Event, "the timer ticks") }
	return walk.All(walk.Space[world]{
		Steps: x.steps,
		Broken: func(w world) string {
			if w.reader == reads && (w.supervisor == reads || w.supervisor == inside) {
				return "both read"
			}
			if w.reader == reads && w.supervisor == over {
				return "the reader reads after the end"
			}
			return w.wrong
		},
		Ways: []walk.Way[world]{
			{Wrong: "a Read waits although there is something for it", By: prompt, Goal: func(w world) bool {
				return w.reader == top || w.ended || w.supervisor == inside || !w.unread() && w.net[0] != message
			}},
			{Wrong: "nobody reads although a Read waits", By: prompt, Goal: func(w world) bool {
				return w.reader != waits || w.ended || w.supervisor == reads || w.supervisor == inside
			}},
			{Wrong: "the supervisor does not answer", By: prompt, Goal: func(w world) bool {
				return w.state != Asked || w.ended || w.supervisor == inside
			}},
			{Wrong: "a Read waits although its context has ended", By: prompt, Goal: func(w world) bool { return !w.done }},
			{Wrong: "the supervisor does not see the end", By: prompt, Goal: func(w world) bool { return !w.ended || w.supervisor == over }},
			{Wrong: "nobody reads what is no message", Goal: func(w world) bool { return w.ended || w.supervisor == inside || w.net[0] != control }},
			{Wrong: "nobody reads", Goal: func(w world) bool {
				return w.reader == reads || w.supervisor == reads || w.supervisor == inside || w.supervisor == over
			}},
		},
	})
}

func TestEveryReachableStateOfTheTurnKeepsItsPromises(t *testing.T) {
	for _, c := range configs {
		w := walkAll(c, trueRules)
		require.Empty(t, w.Wrong)
		t.Logf("%+v: %d states, %d edges", c, len(w.States), w.Edges)
		seen, led := map[State]bool{}, false
		for _, s := range w.States {
			seen[s.state] = true
			led = led || s.handed && s.state == Free
		}
		assert.Len(t, seen, 5)
		assert.True(t, led)
	}
}

// Each mistake is planted in the machine or in one of the goroutines, and the walk finds it.
func TestTheWalkOfTheTurnFindsEachMistake(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(mistakes)) {
		t.Run(name, func(t *testing.T) {
			r := trueRules
			mistakes[name](&r)
			found := ""
			for _, c := range configs {
				if found = walkAll(c, r).Wrong; found != "" {
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(strings.SplitN(found, "\n", 2)[0])
		})
	}
}

// on returns an event that has another result in one state.
func on(event func(State) (State, Act), in, to State, act Act) func(State) (State, Act) {
	return func(s State) (State, Act) {
		if s == in {
			return to, act
		}
		return event(s)
	}
}

// leaving returns Leave with another result in one state.
func leaving(in State, hand bool, to State, act Act) func(State, bool) (State, Act) {
	return func(s State, h bool) (State, Act) {
		if s == in && h == hand {
			return to, act
		}
		return s.Leave(h)
	}
}

var mistakes = map[string]func(*rules){
	"the reader does not wait for its turn":       func(r *rules) { r.take = on(State.Take, Supervisor, Reader, Nothing) },
	"the reader does not wait for the answer":     func(r *rules) { r.take = on(State.Take, Asked, Reader, Nothing) },
	"a free turn is never taken":                  func(r *rules) { r.take = on(State.Take, Free, Free, Nothing) },
	"the supervisor is not woken":                 func(r *rules) { r.take = on(State.Take, Supervisor, Asked, Nothing) },
	"the turn is not offered":                     func(r *rules) { r.lend = on(State.Lend, Asked, Free, Nothing) },
	"the supervisor gives the reader the turn":    func(r *rules) { r.lend = on(State.Lend, Asked, Reader, Offer) },
	"the turn is free for ever":                   func(r *rules) { r.expire = on(State.Expire, Free, Free, Nothing) },
	"the supervisor does not hear of its turn":    func(r *rules) { r.expire = on(State.Expire, Free, Supervisor, Nothing) },
	"the timer takes the turn from a reader":      func(r *rules) { r.expire = func(State) (State, Act) { return Supervisor, Back } },
	"the reader is not woken at the end":          func(r *rules) { r.recall = on(State.Recall, Reader, Recalled, Nothing) },
	"the supervisor reads beside a reader":        func(r *rules) { r.recall = on(State.Recall, Reader, Supervisor, Nothing) },
	"a free turn is not recalled":                 func(r *rules) { r.recall = on(State.Recall, Free, Free, Nothing) },
	"the reader keeps a recalled turn":            func(r *rules) { r.leave = leaving(Recalled, true, Recalled, Nothing) },
	"a recalled turn is free":                     func(r *rules) { r.leave = leaving(Recalled, false, Free, Nothing) },
	"the reader keeps the turn":                   func(r *rules) { r.leave = leaving(Reader, false, Reader, Nothing) },
	"the supervisor does not hear of a hand-over": func(r *rules) { r.leave = leaving(Reader, true, Supervisor, Nothing) },
	"the turn is not handed over":                 func(r *rules) { r.leave = leaving(Reader, true, Free, Nothing) },
	"the reader does not look into the inbox":     func(r *rules) { r.looksAgain = false },
	"what is put beside is not told":              func(r *rules) { r.tells = false },
	"the reader does not ask its context":         func(r *rules) { r.asksContext = false },
	"the reader keeps what it cannot read":        func(r *rules) { r.handsOn = false },
}
