package xsync_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// line is a model of a slot: whether a goroutine holds the slot, and which goroutines wait for it. The first in waiting is the next to hold it.
type line struct {
	slot    xsync.Slot
	held    bool
	waiting []*waiting
}

// waiting is a goroutine that waits for the slot.
type waiting struct {
	cancel context.CancelFunc
	got    <-chan error
}

// join begins to wait, at the end of the line or at its head.
func (l *line) join(t *testing.T, first bool) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiting{cancel: cancel}
	switch {
	case first:
		w.got = acquire(ctx, l.slot.AcquireFirst)
		l.waiting = append([]*waiting{w}, l.waiting...)
	default:
		w.got = acquire(ctx, l.slot.Acquire)
		l.waiting = append(l.waiting, w)
	}
	if !l.held {
		l.release(t, false)
	}
}

// release takes the slot from its holder. If the first of the line gives up at that instant, it or the next one gets the slot.
func (l *line) release(t *testing.T, givesUp bool) {
	if givesUp {
		l.waiting[0].cancel()
	}
	if l.held {
		l.slot.Release()
	}
	synctest.Wait()
	l.held = false
	for len(l.waiting) > 0 && !l.held {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		require.Len(t, w.got, 1, "the first of the line has an answer")
		err := <-w.got
		require.True(t, err == nil || givesUp, err)
		l.held, givesUp = err == nil, false
		w.cancel()
	}
	for _, w := range l.waiting {
		require.Empty(t, w.got, "one at a time")
	}
}

// leave ends the wait of one in the line.
func (l *line) leave(t *testing.T, which int) {
	w := l.waiting[which]
	w.cancel()
	require.ErrorIs(t, <-w.got, context.Canceled)
	l.waiting = append(l.waiting[:which:which], l.waiting[which+1:]...)
	synctest.Wait()
}

// The goroutine that has waited longest gets the slot next, wherever in the line others give up. In the end the slot is free.
func TestALineKeepsItsOrderWhoeverLeaves(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r, l := rand.New(rand.NewPCG(seed, 0)), &line{held: true}
			require.True(t, l.slot.TryAcquire())
			for range 60 {
				switch n := len(l.waiting); {
				case n == 0 || n < 5 && r.IntN(2) == 0:
					l.join(t, r.IntN(5) == 0)
				case r.IntN(2) == 0:
					l.leave(t, r.IntN(n))
				default:
					l.release(t, r.IntN(3) == 0)
				}
				require.Equal(t, !l.held, l.slot.TryAcquire(), "seed %d", seed)
				l.held = true
			}
			for len(l.waiting) > 0 {
				l.release(t, false)
			}
			l.slot.Release()
			require.True(t, l.slot.TryAcquire())
		})
	}
}

func TestTryAcquireLetsOneInAtATime(t *testing.T) {
	var s xsync.Slot
	var g sync.WaitGroup
	in := 0 // guarded by the slot
	for range 4 {
		g.Go(func() {
			for range 50_000 {
				if s.TryAcquire() {
					if in++; in != 1 {
						t.Error("two are in")
					}
					in--
					s.Release()
				}
			}
		})
	}
	g.Wait()
	require.True(t, s.TryAcquire())
}
