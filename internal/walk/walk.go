// Package walk visits every state that a pure machine can reach from a first one, breadth first. It is
// for tests.
package walk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Space says which states a walk visits. A state S holds, as plain values, the machine and whatever around the
// machine has an influence on it.
type Space[S comparable] struct {
	First  S
	Steps  func(S) []Step[S]
	Broken func(S) string // returns the invariant that a state breaks, or ""
	Ways   []Way[S]
}

// Step is one thing that can happen in a state.
type Step[S comparable] struct {
	Event string
	Free  bool // the step needs neither the peer nor the user
	State S
}

// Way is the promise that a goal can always be reached: from each state, steps that count lead to a state in
// which Goal returns true.
type Way[S comparable] struct {
	Wrong string             // the message about a state from which no goal can be reached
	Goal  func(S) bool       // reports whether a state is a goal, or needs none
	By    func(Step[S]) bool // reports whether a step counts; nil: the steps that are Free count
}

// counts reports whether a step counts.
func (w *Way[S]) counts(s Step[S]) bool {
	if w.By == nil {
		return s.Free
	}
	return w.By(s)
}

// Walk is what a walk has found.
type Walk[S comparable] struct {
	States []S
	Edges  int
	Wrong  string // the first broken invariant or way, the events that lead to the state, and the state; "": nothing is broken

	number map[S]int32
	origin []origin
}

// origin is how a state was reached first.
type origin struct {
	from  int32
	event string
}

// All walks from the first state, and stops at the first broken invariant.
func All[S comparable](space Space[S]) *Walk[S] {
	w := &Walk[S]{States: []S{space.First}, number: map[S]int32{space.First: 0}, origin: []origin{{}}}
	if broken := space.Broken(space.First); broken != "" {
		w.Wrong = w.say(broken, 0)
		return w
	}
	before := make([][][]int32, len(space.Ways)) // for each way and each state: the states from which a step leads there
	for at := int32(0); int(at) < len(w.States); at++ {
		for _, s := range space.Steps(w.States[at]) {
			w.Edges++
			to, seen := w.number[s.State]
			if !seen {
				to = int32(len(w.States))
				w.number[s.State] = to
				w.States, w.origin = append(w.States, s.State), append(w.origin, origin{at, s.Event})
				if broken := space.Broken(s.State); broken != "" {
					w.Wrong = w.say(broken, to)
					return w
				}
			}
			for i := range space.Ways {
				if to != at && space.Ways[i].counts(s) {
					before[i] = grown(before[i], to)
					before[i][to] = append(before[i][to], at)
				}
			}
		}
	}
	for i := range space.Ways {
		if lost, ok := w.lost(&space.Ways[i], grown(before[i], int32(len(w.States)-1))); ok {
			w.Wrong = w.say(space.Ways[i].Wrong, lost)
			return w
		}
	}
	return w
}

// grown returns s with an element i.
func grown(s [][]int32, i int32) [][]int32 {
	if more := int(i) + 1 - len(s); more > 0 {
		s = append(s, make([][]int32, more)...)
	}
	return s
}

// lost returns the first state from which no step that counts leads on to a goal.
func (w *Walk[S]) lost(way *Way[S], before [][]int32) (state int32, ok bool) {
	reaches := make([]bool, len(w.States))
	var queue []int32
	for i := range w.States {
		if way.Goal(w.States[i]) {
			reaches[i] = true
			queue = append(queue, int32(i))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, from := range before[queue[0]] {
			if !reaches[from] {
				reaches[from] = true
				queue = append(queue, from)
			}
		}
	}
	i := slices.Index(reaches, false)
	return int32(i), i >= 0
}

// say returns what is wrong with a state, the events that lead there, and the state.
func (w *Walk[S]) say(wrong string, state int32) string {
	var events []string
	for at := state; at != 0; at = w.origin[at].from {
		events = append(events, w.origin[at].event)
	}
	slices.Reverse(events)
	return fmt.Sprintf("%s\n%s\n%+v", wrong, strings.Join(events, ", "), w.States[state])
}

// SkipWithRace skips a test of a walk if the race detector is on. One goroutine makes the walk, so there is no race to find.
func SkipWithRace(t testing.TB) {
	if raced {
		t.Skip("one goroutine makes the walk: the race detector has nothing to find")
	}
}
