package meter

import (
	"reflect"
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

// No count is forgotten, also not one that a later version adds.
func TestEachCountIsAddedAndRaised(t *testing.T) {
	var one, sum, most Counts
	fields := reflect.ValueOf(&one).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetUint(uint64(i + 1))
	}
	sum.add(one)
	most.raise(one)
	require.Equal(t, one, sum)
	require.Equal(t, one, most)
	sum.add(one)
	most.raise(sum)
	most.raise(one)
	require.Equal(t, sum, most)
	require.EqualValues(t, 2*fields.NumField(), reflect.ValueOf(sum).Field(fields.NumField()-1).Uint())
}
