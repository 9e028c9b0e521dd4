package bridge

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Random pushes and removals, compared with a slice that is sorted.
func TestTheQueueGivesTheStreamWhoseTurnIsFirst(t *testing.T) {
	start := time.Now()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q queue[int, int]
		var model []*stream[int, int]
		for range 500 {
			if len(model) == 0 || r.IntN(3) > 0 {
				s := &stream[int, int]{due: start.Add(time.Duration(r.IntN(9)) * time.Second)}
				q.push(s)
				model = append(model, s)
			} else {
				i := r.IntN(len(model))
				q.remove(model[i])
				require.Zero(t, model[i].turn.rank)
				q.remove(model[i]) // changes nothing
				model = slices.Delete(model, i, i+1)
			}
		}
		slices.SortStableFunc(model, func(a, b *stream[int, int]) int {
			return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.turn.number, b.turn.number))
		})
		for _, s := range model {
			require.Same(t, s, q.first())
			q.remove(s)
		}
		require.Nil(t, q.first())
	}
}

// A stream that waits for a time does not stand behind those that came later than that time.
func TestAStreamWithoutATimeWaitsFromNowOn(t *testing.T) {
	var q queue[int, int]
	past := &stream[int, int]{due: time.Now().Add(-time.Second)}
	now := &stream[int, int]{}
	later := &stream[int, int]{due: time.Now().Add(time.Hour)}
	for _, s := range []*stream[int, int]{later, now, past} {
		q.push(s)
	}
	for _, s := range []*stream[int, int]{past, now, later} {
		require.Same(t, s, q.first())
		q.remove(s)
	}
}
