package event_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/event"
)

func TestEventsComeOutByTimeAndThenInOrderOfInsertion(t *testing.T) {
	type due struct{ at, nth int64 }
	r := rand.New(rand.NewPCG(1, 2))
	var q event.Queue[int64]
	var waiting []due
	earliest := func(a, b due) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.nth - b.nth)
	}
	for n := range int64(20_000) {
		if r.IntN(3) > 0 {
			at := r.Int64N(50) // many at one instant
			q.Push(at, n)
			waiting = append(waiting, due{at, n})
		} else if len(waiting) > 0 {
			want := slices.MinFunc(waiting, earliest)
			next, ok := q.Next()
			require.True(t, ok)
			require.Equal(t, want.at, next)
			at, e, ok := q.Pop()
			require.True(t, ok)
			require.Equal(t, want, due{at, e})
			waiting = slices.DeleteFunc(waiting, func(d due) bool { return d == want })
		}
		require.Equal(t, len(waiting), q.Len())
	}
	slices.SortFunc(waiting, earliest)
	for _, want := range waiting {
		at, e, _ := q.Pop()
		require.Equal(t, want, due{at, e})
	}
	_, _, ok := q.Pop()
	require.False(t, ok, "it is empty")
	_, ok = q.Next()
	require.False(t, ok)
}

func TestALaneIsFirstInFirstOut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l event.FIFO[int64]
	put, taken := int64(0), int64(0)
	for range 20_000 {
		if r.IntN(5) < 3 {
			l.Push(put/3, put)
			put++
		} else if next, peeked, ok := l.Peek(); ok {
			at, e, ok := l.Pop()
			require.True(t, ok)
			require.Equal(t, []int64{taken / 3, taken, taken / 3, taken}, []int64{at, e, next, peeked})
			taken++
		}
		require.EqualValues(t, put-taken, l.Len())
	}
	for at, e, ok := l.Pop(); ok; at, e, ok = l.Pop() {
		require.Equal(t, []int64{taken / 3, taken}, []int64{at, e})
		taken++
	}
	require.Equal(t, put, taken)
	_, ok := l.Next()
	require.False(t, ok)
	_, _, ok = l.Peek()
	require.False(t, ok)
}

func TestNothingIsAllocatedPerEvent(t *testing.T) {
	var q event.Queue[[2]uint32]
	var l event.FIFO[[2]uint32]
	round := func() {
		for n := range int64(1000) {
			q.Push(n*7919%1000, [2]uint32{uint32(n)})
			l.Push(n, [2]uint32{uint32(n)})
		}
		for q.Len() > 0 {
			q.Pop()
			l.Pop()
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(10, round))
}

// BenchmarkQueue is one event in and one out, with so many waiting as calls are
// being served in the largest scenario.
func BenchmarkQueue(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var q event.Queue[[2]uint32]
	for range 12_000 {
		q.Push(r.Int64N(1e7), [2]uint32{})
	}
	for b.Loop() {
		at, e, _ := q.Pop()
		q.Push(at+r.Int64N(1e7), e)
	}
}

func BenchmarkLane(b *testing.B) {
	var l event.FIFO[[2]uint32]
	for n := range int64(12_000) {
		l.Push(n, [2]uint32{})
	}
	for b.Loop() {
		at, e, _ := l.Pop()
		l.Push(at+12_000, e)
	}
}
