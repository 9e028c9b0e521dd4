package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every end of a session, from every patience.
func TestPatienceGrowsWithEachSilentSessionInARow(t *testing.T) {
	for _, test := range []struct {
		shown lesson
		next  [4]patience // from each patience
	}{
		{lessonProbed | lessonSilent, [4]patience{1, 2, 3, 3}},
		{lessonProbed | lessonPatient | lessonSilent, [4]patience{1, 2, 3, 3}},
		{lessonProbed | lessonPatient, [4]patience{0, 1, 2, 3}}, // it would have been cut without patience
		{lessonProbed, [4]patience{}},                           // the row has ended
		{lessonSilent, [4]patience{}},                           // it was not probed
		{0, [4]patience{}},
	} {
		for p, next := range test.next {
			require.Equal(t, next, patience(p).ended(test.shown), "%b from %d", test.shown, p)
		}
	}
}

func TestOneQuickAnswerEndsPatience(t *testing.T) {
	for p := range mostPatience + 1 {
		require.Zero(t, p.answered(20*time.Second, 30*time.Second))
		require.Equal(t, p, p.answered(20*time.Second+1, 30*time.Second))
		require.Equal(t, 10*time.Second*[...]time.Duration{1, 2, 4, 8}[p], p.stretch(10*time.Second))
	}
}
