package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 9: WaitStart, Status and AwaitReady have the same verdict for each failure.
func TestStatusHasVerdictOfWait(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var waits []backoff.Class
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
			waits = append(waits, w.Verdict.Class)
		}}
		c := s.Open(&o)
		for i, err := range []error{
			scene.Answered(404), scene.Answered(404), scene.ErrLost, &conn.ProtocolError{Err: scene.ErrLost},
			scene.Answered(401), backoff.Refresh(scene.ErrLost), backoff.Refresh(scene.ErrLost), scene.Answered(503),
		} {
			s.WantDial().Refuse(err)
			require.Len(t, waits, i+1)
			require.Equal(t, waits[i], c.Status().Verdict, i)
		}
		require.Equal(t, []backoff.Class{
			backoff.ClassRetry, backoff.ClassSlow, backoff.ClassRetry, backoff.ClassRetry, backoff.ClassSlow,
			backoff.ClassRefresh, backoff.ClassSlow, backoff.ClassOverload,
		}, waits)
	})
}

// The same holds while another dial is in progress, and for a session that is lost during its
// rotation.
func TestFirstLenientVerdictIsNotSlowBesideDial(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, hung := s.Hang(&o)
		beside := s.WantDial()
		beside.Refuse(scene.Answered(404))
		require.ErrorIs(t, c.Status().Err, scene.Answered(404))
		require.Equal(t, backoff.ClassRetry, c.Status().Verdict)
		hung.Accept()
		require.NoError(t, c.AwaitReady(t.Context()))
	})
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.WantDial()
		old.Fail(&conn.CloseError{Code: 1008})
		time.Sleep(time.Second)
		require.ErrorContains(t, c.Status().Err, "1008")
		require.Equal(t, backoff.ClassRetry, c.Status().Verdict)
		d.Accept()
		require.NoError(t, c.AwaitReady(t.Context()))
	})
}
