package xsync_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

var errEnough = errors.New("waited long enough")

// acquire begins an Acquire. The channel gets its result.
func acquire(ctx context.Context, how func(context.Context, *xsync.Context) error) <-chan error {
	got := make(chan error, 1)
	go func() { got <- how(ctx, nil) }()
	synctest.Wait()
	return got
}

func TestASlotLetsOneInAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s xsync.Slot
		require.True(t, s.TryAcquire())
		require.False(t, s.TryAcquire())
		waiting := acquire(t.Context(), s.Acquire)
		require.Empty(t, waiting)
		s.Release()
		require.NoError(t, <-waiting)
		require.False(t, s.TryAcquire())
	})
}

func TestTheEndOfAContextEndsTheWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s xsync.Slot
		require.True(t, s.TryAcquire())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		require.ErrorIs(t, s.Acquire(ctx, nil), errEnough)
		var life xsync.Context
		time.AfterFunc(time.Second, life.End)
		require.ErrorIs(t, s.AcquireFirst(t.Context(), &life), net.ErrClosed)
		s.Release() // the slot is kept for nobody
		require.True(t, s.TryAcquire())
	})
}

// A goroutine that comes back at once gets ahead of a waiter a few times only. The waiter may be
// faster, so the most of many times counts.
func TestAWaiterIsNotOvertakenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		for range 300 {
			most = max(most, overtake(t))
		}
		require.Equal(t, 4, most)
	})
}

// overtake returns how often a goroutine has got a slot again before one that waits for it.
func overtake(t *testing.T) (rounds int) {
	var s xsync.Slot
	require.True(t, s.TryAcquire())
	waiting := acquire(t.Context(), s.Acquire)
	for ; len(waiting) == 0 && rounds < 100; rounds++ {
		s.Release()
		taken := s.TryAcquire()
		synctest.Wait() // the waiter has the slot, or has seen that it lost
		if !taken {
			break
		}
	}
	require.Len(t, waiting, 1)
	return rounds
}

func TestAcquireFirstGoesAheadOfAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s xsync.Slot
		require.True(t, s.TryAcquire())
		second := acquire(t.Context(), s.Acquire)
		first := acquire(t.Context(), s.AcquireFirst)
		s.Release()
		require.False(t, s.TryAcquire(), "it is kept for the first")
		require.NoError(t, <-first)
		synctest.Wait()
		require.Empty(t, second)
		s.Release()
		require.NoError(t, <-second)
	})
}

// A waiter may give up at the moment it gets the slot or a wake-up. Then the next one wakes.
func TestAWaiterThatGivesUpWakesTheNext(t *testing.T) {
	for _, how := range []func(*xsync.Slot) func(context.Context, *xsync.Context) error{
		func(s *xsync.Slot) func(context.Context, *xsync.Context) error { return s.Acquire },
		func(s *xsync.Slot) func(context.Context, *xsync.Context) error { return s.AcquireFirst },
	} {
		for range 100 {
			synctest.Test(t, func(t *testing.T) {
				var s xsync.Slot
				require.True(t, s.TryAcquire())
				ctx, cancel := context.WithCancel(t.Context())
				hasty := acquire(ctx, how(&s))
				patient := acquire(t.Context(), s.Acquire)
				cancel()
				s.Release()
				if <-hasty == nil {
					s.Release()
				}
				require.NoError(t, <-patient)
			})
		}
	}
}

func TestASlotIsNeverHeldTwiceAndNeverLost(t *testing.T) {
	var s xsync.Slot
	var life xsync.Context
	var g sync.WaitGroup
	in, times := 0, 0 // guarded by the slot
	for range 8 {
		g.Go(func() {
			for range 2000 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(50))*time.Microsecond)
				how := s.Acquire
				if rand.IntN(10) == 0 {
					how = s.AcquireFirst
				}
				if how(ctx, &life) == nil {
					in++
					if in != 1 {
						t.Error("two are in")
					}
					times++
					in--
					s.Release()
				}
				cancel()
			}
		})
	}
	g.Wait()
	require.True(t, s.TryAcquire())
	t.Logf("%d of 16000 were let in", times)
}
