package handover

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/walk"
)

var update = flag.Bool("update", false, "write the table of all steps")

// table has each step that a Machine takes in the walk. Each history checks that its handovers take no other.
const table = "../history/testdata/handover.txt"

func TestTheTableHasTheStepsOfTheWalk(t *testing.T) {
	walk.SkipWithRace(t)
	steps := make(map[string]bool)
	Tap = func(s Step) { steps[s.String()] = true }
	defer func() { Tap = nil }()
	for _, overlap := range overlaps {
		walkAll(overlap, tappedRules)
	}
	want := strings.Join(slices.Sorted(maps.Keys(steps)), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(want), 0o644))
	}
	got, err := os.ReadFile(table)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./reconnect/internal/handover -run TheTable -update")
}

// tapped returns the rule that calls a method of a Tapped.
func tapped[A any](f func(*Tapped) A) func(*Machine) A {
	return func(m *Machine) A {
		t := Tapped{*m}
		defer func() { *m = t.Machine }()
		return f(&t)
	}
}

// tappedWith is tapped for a method with an argument.
func tappedWith[B, A any](f func(*Tapped, B) A) func(*Machine, B) A {
	return func(m *Machine, b B) A { return tapped(func(t *Tapped) A { return f(t, b) })(m) }
}

// tappedRules are trueRules, and Tap gets each step.
var tappedRules = rules{
	tappedWith((*Tapped).Begin),
	func(m *Machine, resumed, behind bool) Lead {
		return tapped(func(t *Tapped) Lead { return t.NextReady(resumed, behind) })(m)
	},
	tapped((*Tapped).Holds), tapped((*Tapped).HeldFull),
	func(m *Machine, how Ending, unread bool) bool {
		return tapped(func(t *Tapped) bool { return t.OldLost(how, unread) })(m)
	},
	tappedWith((*Tapped).Release), tappedWith((*Tapped).NextLost), tappedWith((*Tapped).OldEnded),
	tapped((*Tapped).Bridged), tapped((*Tapped).OldDone), tapped((*Tapped).NextDone), tapped((*Tapped).Planned),
}
