package run_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 14: Classify is called once for each failure.
func TestClassifyIsAskedOncePerFailure(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		asked := 0
		o.Run.Classify = func(error) backoff.Verdict {
			asked++
			return backoff.Verdict{Class: backoff.ClassRetry}
		}
		s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept().Fail(scene.ErrLost)
		s.WantDial()
		require.Equal(t, 2, asked)
	})
}

// Promise 9: if Classify returns ClassOK for an error, the class is ClassRetry.
func TestAnErrorIsNeverASuccess(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var classes []backoff.Class
		o.Run.Classify = func(error) backoff.Verdict { return backoff.Verdict{} }
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
			classes = append(classes, w.Verdict.Class)
		}}
		s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial()
		require.Equal(t, []backoff.Class{backoff.ClassRetry}, classes)
	})
}

// Promise 9: no Retry-After is longer than an hour.
func TestRetryAfterIsClampedAtAnHour(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		o.Run.Classify = func(error) backoff.Verdict { return backoff.Verdict{RetryAfter: 1 << 60} }
		s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		require.Equal(t, time.Hour, s.WantDial().At)
	})
}

// Promise 2: the random numbers come from RunOptions.Rand, so that equal sources give equal
// waits.
func TestEqualSourcesGiveEqualWaits(t *testing.T) {
	at := func() (at time.Duration) {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := reconnect.Options{Run: reconnect.RunOptions{Rand: rand.NewPCG(1, 2)}}
			s.Open(&o)
			s.WantDial().Refuse(scene.ErrLost)
			at = s.WantDial().At
		})
		return at
	}
	require.Equal(t, at(), at())
}
