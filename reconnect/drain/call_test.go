package drain_test

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// A closer that is slow gives its place up after a second. The others keep their times.
func TestASlowCloseDelaysNobody(t *testing.T) {
	var alone, beside []time.Duration
	run := func(slow time.Duration) (at []time.Duration, took time.Duration) {
		withGroup(t, drain.Options{Lead: -1, Closers: 20}, func(t *testing.T, s *scene) {
			for i := range 600 { // ten in a second
				takes := time.Duration(0)
				if i%10 == 0 {
					takes = slow
				}
				s.Add(s.closer(i, takes))
			}
			took = s.drain()
			at = times(s.closes())
		})
		return at, took
	}
	alone, _ = run(0)
	beside, took := run(9 * time.Second)
	require.Equal(t, alone, beside)
	require.Greater(t, took, time.Minute)
}

// With all places taken by slow ones the next waits for a second, and no longer.
func TestAPlaceIsFreeAfterASecond(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1, Closers: 2}, func(t *testing.T, s *scene) {
		for i := range 6 {
			s.Add(s.closer(i, 1500*time.Millisecond))
		}
		require.Equal(t, 3500*time.Millisecond, s.drain())
		require.Equal(t, []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second, 2 * time.Second}, times(s.closes()))
	})
}

func TestAPlaceIsFreeWhenACloseReturns(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1, Closers: 2}, func(t *testing.T, s *scene) {
		for i := range 6 {
			s.Add(s.closer(i, 100*time.Millisecond))
		}
		require.Equal(t, 300*time.Millisecond, s.drain())
	})
}

// hang is a closer that does not return until the test ends.
func hang(t *testing.T) func(int, string) error {
	end := make(chan struct{})
	t.Cleanup(func() { close(end); synctest.Wait() })
	return func(int, string) error { <-end; return nil }
}

// Drain reports a closer that does not return, and does not wait for it.
func TestAHungCloseIsReported(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1}, func(t *testing.T, s *scene) {
		s.add(1, 10)
		s.Add(hang(t))
		err := s.Drain(context.Background())
		require.Equal(t, &drain.Error{Hung: 1}, err)
		require.EqualError(t, err, "drain: hung: 1")
		require.Equal(t, 10*time.Second, s.now())
		require.Equal(t, drain.Stats{Added: 11, Closed: 10, Members: 1, Hung: 1}, s.Stats())
	})
}

// The goroutines are bounded. With every closer hung the drain ends without the rest.
func TestHungClosesAreBounded(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1, Closers: 2}, func(t *testing.T, s *scene) {
		stuck, calls := hang(t), new(atomic.Int32)
		for range 100 {
			s.Add(func(code int, reason string) error { calls.Add(1); return stuck(code, reason) })
		}
		err := s.Drain(context.Background())
		require.EqualError(t, err, "drain: hung: 32, not closed: 68")
		require.Equal(t, 25*time.Second, s.now(), "the last two began after 15 s")
		synctest.Wait()
		require.EqualValues(t, 32, calls.Load(), "none begins after the drain")
	})
}

// Drain does not wait for the only connection whose closer cannot be called any more.
func TestOneConnectionMayBeLeft(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1, Closers: 1}, func(t *testing.T, s *scene) {
		stuck := hang(t)
		for range 17 {
			s.Add(stuck)
		}
		require.EqualError(t, s.Drain(context.Background()), "drain: hung: 16, not closed: 1")
		require.Equal(t, 25*time.Second, s.now(), "the last began after 15 s")
	})
}

// Though no other closer can be called, a handler may still return in time.
func TestDrainWaitsForAHandlerThoughClosersHang(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1, Closers: 1}, func(t *testing.T, s *scene) {
		stuck := hang(t)
		for range 16 {
			s.Add(stuck)
		}
		h := s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(30 * time.Second) }))
		go ask(h) // Drain waits for it
		synctest.Wait()
		require.EqualError(t, s.Drain(context.Background()), "drain: hung: 16")
		require.Equal(t, 30*time.Second, s.now())
	})
}

// With a context that has ended, nothing takes longer than CloseTimeout.
func TestAHurriedDrainEndsThoughAllHang(t *testing.T) {
	withGroup(t, drain.Options{Closers: 2, CloseTimeout: 3 * time.Second}, func(t *testing.T, s *scene) {
		stuck, calls := hang(t), new(atomic.Int32)
		for range 100 {
			s.Add(func(code int, reason string) error { calls.Add(1); return stuck(code, reason) })
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		err := s.Drain(ctx)
		require.EqualError(t, err, "drain: enough, hung: 6, not closed: 94")
		require.Equal(t, 3*time.Second, s.now())
		synctest.Wait()
		require.EqualValues(t, 6, calls.Load(), "none begins after the drain")
	})
}

// One that returns after all is not hung any more, and makes room.
func TestAHungCloseMayReturn(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Second, Closers: 1, CloseTimeout: 100 * time.Millisecond}, func(t *testing.T, s *scene) {
		for i := range 40 {
			s.Add(s.closer(i, time.Minute))
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, drain.Stats{Added: 40, Members: 40, Hung: 16}, s.Stats())
		time.Sleep(time.Hour)
		require.Equal(t, drain.Stats{Added: 40, Closed: 40, Renewed: 40}, s.Stats())
	})
}

// Such a closer has ended the goroutine, and not the Group.
func TestACloserMayEndItsGoroutine(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1}, func(t *testing.T, s *scene) {
		s.Add(func(int, string) error { runtime.Goexit(); return nil })
		s.drain()
		require.Equal(t, drain.Stats{Added: 1, Failed: 1}, s.Stats())
	})
}
