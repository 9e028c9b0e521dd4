package reconnect_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
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

// The network may be back while a dial hangs in the old one: the next follows at once.
func TestAKickDuringADialCutsTheWaitAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		d := s.wantDial()
		time.Sleep(time.Minute / 2)
		c.Kick()
		d.refuse(errLost)
		d = s.wantDial()
		require.Equal(t, time.Minute/2, d.at)
		d.refuse(errLost)
		require.Equal(t, time.Minute/2+time.Second, s.wantDial().at, "one kick cuts one wait")
	})
}

// A kick is not kept for the next outage.
func TestAKickDuringASessionIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		d := s.wantDial()
		c.Kick() // of a dial that succeeds
		peer := d.accept()
		c.Kick()
		peer.Fail(errLost)
		require.Equal(t, time.Second, s.wantDial().at)
	})
}

func TestOneKickCutsOneWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		time.Sleep(time.Second)
		c.Kick()
		c.Kick()
		s.wantDial().refuse(errLost)
		require.Equal(t, time.Hour+time.Second, s.wantDial().at)
	})
}

// The wait at the gate is not cut, and a kick that comes meanwhile not kept.
func TestAKickAtTheGateIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		g := &gate{}
		o.Run.Gate, o.Run.Host = g, "h"
		var opened atomic.Pointer[reconnect.Conn]
		o.Run.Trace = &reconnect.Trace{GateStart: func(reconnect.GateStart) {
			if c := opened.Load(); c != nil {
				require.True(t, c.Status().AtGate)
				c.Kick()
			}
		}}
		c := s.open(&o)
		opened.Store(c)
		s.wantDial().refuse(errLost)
		d := s.wantDial()
		require.False(t, c.Status().AtGate)
		d.refuse(errLost)
		require.Equal(t, 5*time.Second, s.wantDial().at, "each is 1 s at the gate")
	})
}

// A kick cuts one wait, also if the gate refuses the try after it.
func TestAKickBeforeAGateThatRefusesCutsOneWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		refusals := 0
		o := run(every(time.Second))
		o.Run.Host = "h"
		o.Run.Gate = refusing(func() error { refusals++; return errLost })
		c := s.open(&o)
		time.Sleep(500 * time.Millisecond)
		c.Kick()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 1+1+3, refusals)
	})
}

// refusing is a Gate that refuses everybody.
type refusing func() error

func (f refusing) Acquire(context.Context, string) (func(backoff.Verdict), error) { return nil, f() }

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

// kicked runs a Run whose dials fail, with a channel of room for three kicks, and
// returns when they came.
func kicked(t *testing.T, prepare func(kick chan struct{})) []time.Duration {
	var dials []time.Duration
	synctest.Test(t, func(t *testing.T) {
		kick := make(chan struct{}, 3)
		prepare(kick)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour-time.Second)
		defer cancel()
		start := time.Now()
		err := reconnect.Run(ctx, func(context.Context) (*pipe, error) {
			dials = append(dials, time.Since(start))
			time.Sleep(time.Minute)
			return nil, errLost
		}, func(context.Context, *pipe, *reconnect.Session) error { return nil },
			&reconnect.RunOptions{Policy: every(time.Hour), Kick: kick})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	return dials
}

func TestAClosedKickKicksNobody(t *testing.T) {
	require.Len(t, kicked(t, func(kick chan struct{}) { close(kick) }), 10)
}

func TestAKickThatWasSentBeforeTheDialIsForgotten(t *testing.T) {
	require.Len(t, kicked(t, func(kick chan struct{}) { kick <- struct{}{}; kick <- struct{}{} }), 10)
}
