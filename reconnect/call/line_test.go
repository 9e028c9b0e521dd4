package call

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The line agrees with a sorted list, whatever joins and leaves.
func TestTheOldestQuestionHasTheTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l line[int]
	var list []*question[int]
	for order := range uint64(20_000) {
		if i := r.IntN(len(list) + 20); i < len(list) {
			q := list[i]
			first := q == slices.MinFunc(list, byOrder)
			list = slices.Delete(list, i, i+1)
			var told <-chan struct{}
			if len(list) > 0 {
				told = l.turn(slices.MinFunc(list, byOrder))
			}
			require.True(t, l.leave(q))
			require.False(t, l.leave(q), "q has left")
			if first && told != nil {
				<-told // closed, or the test hangs
			}
		} else {
			q := &question[int]{order: order ^ 0xff} // the newest is not always the last
			l.join(q)
			l.join(q)
			list = append(list, q)
		}
		require.Len(t, l, len(list))
		for _, q := range list {
			require.Equal(t, q == slices.MinFunc(list, byOrder), l.open(q))
		}
	}
}

func byOrder(a, b *question[int]) int { return int(a.order) - int(b.order) }

// fill returns a line of n questions that joined in a random order, as those of a lost session do.
func fill(n int) *line[int] {
	l := new(line[int])
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		l.join(&question[int]{order: uint64(i)})
	}
	return l
}

// empty takes the questions out of a line in their order, as they go again.
func empty(l *line[int]) {
	for len(*l) > 0 {
		l.leave((*l)[0])
	}
}

// moved returns how many places of a line have another question after f.
func moved(l *line[int], f func()) (n int) {
	before := slices.Clone(*l)
	f()
	for i := range min(len(before), len(*l)) {
		if before[i] != (*l)[i] {
			n++
		}
	}
	return n
}

// Else a loss of n questions costs n times n, under the mutex.
func TestAJoinAndALeaveMoveFewQuestions(t *testing.T) {
	const n, log = 1 << 14, 14
	l := fill(n)
	q := (*l)[0]
	require.LessOrEqual(t, moved(l, func() { l.leave(q) }), log+1)
	require.LessOrEqual(t, moved(l, func() { l.join(q) }), log+1)
	require.Same(t, q, (*l)[0])
}

// Ten times the questions take little more than ten times as long.
func BenchmarkLine(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				empty(fill(n))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/question")
		})
	}
}
