package drain_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// The tests of numbers at the ends of their ranges.

const longest = time.Duration(math.MaxInt64)

func TestTheLongestMaxAgeIsNever(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: longest}, func(t *testing.T, s *scene) {
		time.Sleep(time.Second)
		members := s.add(1, 100)
		time.Sleep(365 * 24 * time.Hour)
		require.Empty(t, s.closes())
		for _, m := range members {
			m.Remove()
		}
	})
}

func TestADeadlineFarAwayIsNone(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		time.Sleep(time.Second)
		s.add(1, 100)
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		require.NoError(t, s.Drain(ctx))
		require.GreaterOrEqual(t, s.closes()[0].at, 16*time.Second, "after the lead")
		require.Greater(t, s.now(), time.Minute)
	})
}

func TestTheLongestCloseTimeoutIsNone(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, CloseTimeout: longest}, func(t *testing.T, s *scene) {
		time.Sleep(time.Second)
		s.Add(s.closer(1, time.Hour))
		require.NoError(t, s.Drain(t.Context()))
		require.Equal(t, drain.Stats{Added: 1, Closed: 1}, s.Stats())
	})
}

func TestAHurriedDrainWaitsForTheLongestCloseTimeout(t *testing.T) {
	withGroup(t, drain.Options{CloseTimeout: longest}, func(t *testing.T, s *scene) {
		time.Sleep(time.Second)
		s.Add(s.closer(1, time.Hour))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		require.EqualError(t, s.Drain(ctx), "drain: enough, closed early: 1")
		require.Equal(t, time.Hour+time.Second, s.now())
	})
}

func TestDrainWaitsForAHandlerWithTheLongestCloseTimeout(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, CloseTimeout: longest}, func(t *testing.T, s *scene) {
		time.Sleep(time.Second)
		h := s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }))
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) // Drain waits for it
		synctest.Wait()
		require.NoError(t, s.Drain(t.Context()))
		require.Equal(t, time.Hour+time.Second, s.now())
	})
}

func TestAnyNumberOfClosersMayRun(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Closers: math.MaxInt}, func(t *testing.T, s *scene) {
		s.add(1, 100)
		s.drain()
		require.Len(t, s.closes(), 100)
	})
}

func TestTheLongestTimesDoNotOverflow(t *testing.T) {
	withGroup(t, drain.Options{Lead: longest, Window: longest, Warn: longest}, func(t *testing.T, s *scene) {
		s.add(1, 10)
		s.AddNotice(s.closer(11, 0), s.noticer(11, 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, s.Drain(ctx))
		require.GreaterOrEqual(t, s.closes()[0].at, 30*time.Second)
		require.LessOrEqual(t, s.now(), time.Minute)
	})
}

func TestTheShortestTimesAreEnough(t *testing.T) {
	withGroup(t, drain.Options{Lead: 1, Window: 1, CloseTimeout: 1}, func(t *testing.T, s *scene) {
		s.add(1, 100)
		s.drain()
		require.Len(t, s.closes(), 100)
		require.LessOrEqual(t, s.now(), 2*time.Nanosecond)
	})
}
