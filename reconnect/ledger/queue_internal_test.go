package ledger

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is removed from the middle takes no room for long, though the first message stays.
func TestAQueueWithGapsIsBounded(t *testing.T) {
	var q queue
	for n := range uint64(100_000) {
		q.push(queued{id: n + 1, seq: n + 1})
		if n > 10 {
			q.remove(q.byID(n - 5))
		}
		require.LessOrEqual(t, len(q.entries), 100)
	}
}

func TestAnEmptyQueueIsSmall(t *testing.T) {
	var q queue
	for n := range uint64(1000) {
		q.push(queued{id: n + 1, seq: n + 1, data: make([]byte, 10)})
	}
	require.Equal(t, 10_000, q.bytes)
	for q.live > 0 {
		q.remove(q.first())
	}
	require.Nil(t, q.entries)
	require.Zero(t, q.bytes)
}

// Whatever is removed, each entry is found by both numbers.
func TestAQueueFindsItsEntries(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var q queue
	var ids []uint64 // that are in the queue
	for n := uint64(1); n < 5000; n++ {
		q.push(queued{id: n, seq: 2 * n})
		ids = append(ids, n)
		for random.IntN(40) < len(ids) {
			i := random.IntN(len(ids))
			gone := ids[i]
			ids = append(ids[:i], ids[i+1:]...)
			q.remove(q.byID(gone))
			require.Nil(t, q.byID(gone))
			require.Nil(t, q.bySeq(2*gone))
		}
		var all []uint64
		for e := range q.all {
			all = append(all, e.id)
			require.Same(t, e, q.byID(e.id))
			require.Same(t, e, q.from(e.seq-1))
		}
		require.ElementsMatch(t, ids, all)
		if len(ids) > 0 {
			require.Equal(t, ids[0], q.first().id)
		}
	}
}
