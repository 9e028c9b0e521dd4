package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Whoever has heard of a wait can cut it, however early that was.
func TestAKickFromWaitStartCutsThatWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		var c *reconnect.Conn
		o.Run.Trace = &reconnect.Trace{WaitStart: func(reconnect.Wait) { c.Kick() }}
		c = s.open(&o)
		s.wantDial().refuse(errLost)
		require.Zero(t, s.wantDial().at)
	})
}

// A kick is not kept for later.
func TestAKickDuringADialCutsNoWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		d := s.wantDial()
		c.Kick()
		d.refuse(errLost)
		require.Equal(t, time.Second, s.wantDial().at)
	})
}

// RunOptions.Kick does for a Run what the method does for a Conn.
func TestTheKickOfARunCutsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		kick := make(chan struct{})
		dials := make(chan time.Time)
		ended := make(chan error)
		go func() {
			ended <- reconnect.Run(ctx, func(context.Context) (*pipe, error) {
				dials <- time.Now()
				return nil, errLost
			}, func(context.Context, *pipe, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Policy: every(time.Hour), Kick: kick})
		}()
		start := <-dials
		time.Sleep(time.Minute)
		kick <- struct{}{}
		require.Equal(t, time.Minute, (<-dials).Sub(start))
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
