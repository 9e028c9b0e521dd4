package drain_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// The closer of a peer that is gone takes as long as a library waits for the answer to its close
// frame. Options.Closers limits how many run at a time, so that some are never called.
func TestHurriedDrainCountsConnectionsNeverClosed(t *testing.T) {
	for _, closers := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			g, err := drain.New(&drain.Options{Closers: closers})
			require.NoError(t, err)
			called := make(chan struct{}, 10_000)
			closer := func(int, string) error {
				called <- struct{}{}
				time.Sleep(5 * time.Second)
				return nil
			}
			for range cap(called) {
				g.Add(closer)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			start := time.Now()
			err = g.Drain(ctx)
			require.LessOrEqual(t, time.Since(start), 15*time.Second)
			var e *drain.Error
			require.ErrorAs(t, err, &e)
			time.Sleep(time.Minute)
			require.Equal(t, cap(called), len(called)+e.Left)
			require.Equal(t, closers == 0, e.Left > 0, "%d are left", e.Left)
		})
	}
}
