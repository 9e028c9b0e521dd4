package walk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/walk"
)

// counter counts up to a limit, and may be put back to 0.
func counter(limit int, broken int, ways ...walk.Way[int]) walk.Space[int] {
	return walk.Space[int]{
		Steps: func(n int) (steps []walk.Step[int]) {
			if n < limit {
				steps = append(steps, walk.Step[int]{Event: "up", Free: true, State: n + 1})
			}
			return append(steps, walk.Step[int]{Event: "reset", State: 0})
		},
		Broken: func(n int) string {
			if n == broken {
				return "broken"
			}
			return ""
		},
		Ways: ways,
	}
}

func TestAWalkVisitsEachStateOnce(t *testing.T) {
	w := walk.All(counter(4, -1))
	require.Equal(t, []int{0, 1, 2, 3, 4}, w.States)
	require.Equal(t, 9, w.Edges)
	require.Empty(t, w.Wrong)
}

func TestAWalkSaysHowABrokenStateIsReached(t *testing.T) {
	w := walk.All(counter(9, 3))
	require.Equal(t, "broken\nup, up, up\n3", w.Wrong)
	require.Len(t, w.States, 4, "it stops there")
}

func TestAWalkBeginsInAStateThatMustBeWhole(t *testing.T) {
	w := walk.All(counter(9, 0))
	require.Equal(t, "broken\n\n0", w.Wrong)
}

// A state from which only a step from outside leads on waits for ever.
func TestAWalkFindsAStateWithoutAWayOut(t *testing.T) {
	even := func(n int) bool { return n%2 == 0 }
	require.Empty(t, walk.All(counter(4, -1, walk.Way[int]{Wrong: "stuck", Goal: even})).Wrong)
	w := walk.All(counter(5, -1, walk.Way[int]{Wrong: "stuck", Goal: even}))
	require.Equal(t, "stuck\nup, up, up, up, up\n5", w.Wrong)
	reset := func(s walk.Step[int]) bool { return strings.HasPrefix(s.Event, "reset") }
	require.Empty(t, walk.All(counter(5, -1, walk.Way[int]{Wrong: "stuck", Goal: even, By: reset})).Wrong)
}
