package meter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two scrapes may read a Conn at once, and report in the other order. And one may have read it before
// it was stopped, and report after that.
func TestReportedCountsNeverGoDown(t *testing.T) {
	x := &member{}
	reported := func(n uint64, final bool) (uint64, bool) {
		counts, gone := x.settle(Counts{Received: n}, final)
		return counts.Received, gone
	}
	for _, step := range []struct {
		read  uint64
		final bool
		want  uint64
		gone  bool
	}{{5, false, 5, false}, {3, false, 5, false}, {7, false, 7, false}, {6, true, 7, false}, {9, false, 7, true}, {9, true, 7, true}} {
		got, gone := reported(step.read, step.final)
		require.Equal(t, step.want, got, step)
		require.Equal(t, step.gone, gone, step)
	}
}
