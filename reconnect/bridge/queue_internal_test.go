package bridge

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
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
				require.Zero(t, model[i].rank)
				q.remove(model[i]) // changes nothing
				model = slices.Delete(model, i, i+1)
			}
		}
		slices.SortStableFunc(model, func(a, b *stream[int, int]) int {
			return a.due.Compare(b.due)
		})
		for _, s := range model {
			requireFirst(t, s, &q)
			q.remove(s)
		}
		require.Empty(t, q.heap)
	}
}

func requireFirst(t *testing.T, want *stream[int, int], q *queue[int, int]) {
	first, from := q.first()
	require.Same(t, want, first)
	require.True(t, want.due.IsZero() || want.due.Equal(from))
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
		requireFirst(t, s, &q)
		q.remove(s)
	}
}

// A seam reaches the streams one by one. A stream that is forgotten before is not brought back, though the
// others begin, or are forgotten, too.
func TestASeamDoesNotReachAForgottenStream(t *testing.T) {
	past := func(context.Context, Request[int]) ([]Item[int, int], error) { return nil, nil }
	b, err := New(&Options[int, int]{Parse: func(reconnect.Message) (it Item[int, int], ok bool) { return it, false }, Past: past})
	require.NoError(t, err)
	for key := range 100 {
		b.message(reconnect.Message{Session: 1}, Item[int, int]{Key: key, Last: 1})
	}
	b.seam(&reconnect.Seam{Session: 1, Lost: 1})
	b.out = nil
	b.pass()
	for key := range 100 {
		require.NoError(t, b.Follow(100+key, Cursor{Offset: 1})) // so that order has other memory
		if key%10 > 0 {
			b.Forget(key)
		}
	}
	for len(b.pending) > 0 {
		b.pass()
	}
	require.Equal(t, Stats{Streams: 110, Stale: 110}, b.Stats())
	require.Len(t, b.fetches.queue.heap, 110)
	stale := make(map[int]int)
	for _, e := range b.out {
		stale[e.Key]++
	}
	require.Len(t, stale, 110)
	for key := range 60 {
		b.Forget(100 + key)
	}
	require.Equal(t, 50, b.Stats().Streams)
	require.LessOrEqual(t, len(b.order), 2*50+16, "what was forgotten takes no room")
}
