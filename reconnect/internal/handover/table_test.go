package handover

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
)

var update = flag.Bool("update", false, "write the table of all changes")

// table has each change of a Machine in the walk: what it is before, and then. Each history checks that its
// handovers make no other.
const table = "../history/testdata/handover.txt"

func TestTheTableHasTheChangesOfTheWalk(t *testing.T) {
	walk.SkipWithRace(t)
	changes := make(map[string]bool)
	noting := notingRules(func(before, after Machine) {
		if before != after {
			changes[fmt.Sprint(before, after)] = true
		}
	})
	for _, overlap := range overlaps {
		walkAll(overlap, noting)
	}
	want := strings.Join(slices.Sorted(maps.Keys(changes)), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(want), 0o644))
	}
	got, err := os.ReadFile(table)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./reconnect/internal/handover -run TheTable -update")
}

// notingRules are the trueRules that change a Machine, and note what it is before and after each.
func notingRules(note func(before, after Machine)) rules {
	noting := func(m *Machine) func() {
		before := *m
		return func() { note(before, *m) }
	}
	r := trueRules
	r.begin = func(m *Machine, ending bool) Begin { defer noting(m)(); return m.Begin(ending) }
	r.nextReady = func(m *Machine, resumed, behind bool) Lead { defer noting(m)(); return m.NextReady(resumed, behind) }
	r.heldFull = func(m *Machine) bool { defer noting(m)(); return m.HeldFull() }
	r.oldLost = func(m *Machine, how Ending, unread bool) bool { defer noting(m)(); return m.OldLost(how, unread) }
	r.release = func(m *Machine, left int) bool { defer noting(m)(); return m.Release(left) }
	r.oldEnded = func(m *Machine, stop bool) Heir { defer noting(m)(); return m.OldEnded(stop) }
	r.bridged = func(m *Machine) bool { defer noting(m)(); return m.Bridged() }
	r.oldDone = func(m *Machine) OldDone { defer noting(m)(); return m.OldDone() }
	r.nextDone = func(m *Machine) bool { defer noting(m)(); return m.NextDone() }
	r.rest = func(m *Machine, resting bool) { defer noting(m)(); m.Rest(resting) }
	return r
}
