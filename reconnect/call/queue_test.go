package call

import (
	"container/list"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The queue agrees with a sorted list, whatever joins and leaves.
func TestOldestRequestHasTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l queue[int]
	var waiting []*pending[int]
	for order := range uint64(20_000) {
		if i := r.IntN(len(waiting) + 20); i < len(waiting) {
			q := waiting[i]
			first := q == slices.MinFunc(waiting, byOrder)
			waiting = slices.Delete(waiting, i, i+1)
			var turn <-chan struct{}
			if len(waiting) > 0 {
				turn = l.turn(slices.MinFunc(waiting, byOrder))
			}
			l.leave(q)
			l.leave(q)
			if first && turn != nil {
				<-turn // closed, or the test hangs
			}
		} else {
			q := &pending[int]{order: order ^ 0xff} // the newest is not always the last
			l.join(q)
			l.join(q)
			waiting = append(waiting, q)
		}
		require.Equal(t, len(waiting), l.Len())
		for _, q := range waiting {
			require.Equal(t, q == slices.MinFunc(waiting, byOrder), l.open(q))
		}
	}
}

func byOrder(a, b *pending[int]) int { return int(a.order) - int(b.order) }

// fill lets n requests join in order, from the first on, as those of a lost session do. There are others
// between them.
func fill(l *queue[int], first, n int) {
	for i := range n {
		l.join(&pending[int]{order: uint64(first + 2*i)})
	}
}

// empty takes the requests out of a queue in their order, as they go again.
func empty(l *queue[int]) {
	for l.Len() > 0 {
		l.leave(at[int](l.Front()))
	}
}

// The requests of the old session of a rotation join those of the new one, which was lost before. A join
// that walked far would cost n times n for a loss, under the mutex.
func TestJoinWalksShortWay(t *testing.T) {
	const n = 1000
	var l queue[int]
	fill(&l, 1, n)
	walked := 0
	for i := range n {
		before := l.last
		l.join(&pending[int]{order: uint64(2 * i)})
		walked += distance(before, l.last)
	}
	require.LessOrEqual(t, walked, 4*n)
	require.True(t, slices.IsSortedFunc(orders(&l), func(a, b uint64) int { return int(a) - int(b) }))
}

// distance returns how many places lie between two of a list.
func distance(a, b *list.Element) int {
	for n, before, after := 0, a, a; ; n++ {
		if before == b || after == b {
			return n
		}
		if before != nil {
			before = before.Prev()
		}
		if after != nil {
			after = after.Next()
		}
	}
}

func orders(l *queue[int]) (all []uint64) {
	for e := l.Front(); e != nil; e = e.Next() {
		all = append(all, at[int](e).order)
	}
	return all
}

// Ten times the requests take about ten times as long.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				var l queue[int]
				fill(&l, 0, n)
				empty(&l)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
}
