package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// awaiting returns options whose OnReceipt takes a second for each message, and whose
// OnSession notes how long it had to wait for that.
func awaiting(waited chan<- time.Duration, failed chan<- error) reconnect.Options {
	o := run(every(0))
	o.WhenDown = reconnect.WhenDownKeep
	o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) { time.Sleep(time.Second) }
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		begun := time.Now()
		err := op.AwaitReceipts()
		failed <- err
		waited <- time.Since(begun)
		return err
	}
	return o
}

// Else what a dead session wrote would look as if it were still queued.
func TestAwaitFatesWaitsUntilDoneWasToldOfTheLastSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		waited, failed := make(chan time.Duration, 2), make(chan error, 2)
		o := awaiting(waited, failed)
		c := s.open(&o)
		peer := s.wantDial().accept()
		require.Zero(t, <-waited)
		require.NoError(t, <-failed)
		for range 3 {
			require.NoError(t, c.Send(reconnect.Out{Message: text("x")}))
		}
		synctest.Wait()
		require.Len(t, peer.Written(), 3)
		peer.Fail(errLost)
		synctest.Wait()
		require.NoError(t, c.Send(reconnect.Out{Message: text("queued")})) // of no concern
		s.wantDial().accept()
		require.Equal(t, 3*time.Second, <-waited)
		require.NoError(t, <-failed)
	})
}

func TestAwaitFatesEndsWithOnSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		waited, failed := make(chan time.Duration, 2), make(chan error, 2)
		o := awaiting(waited, failed)
		o.Run.Policy = every(time.Hour)
		o.OpenTimeout = 100 * time.Millisecond
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, <-failed)
		require.NoError(t, c.Send(reconnect.Out{Message: text("x")}))
		synctest.Wait()
		c.Redial(1, errLost)
		synctest.Wait()
		c.Kick()
		<-waited
		s.wantDial().accept()
		require.ErrorIs(t, <-failed, context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, <-waited)
	})
}
