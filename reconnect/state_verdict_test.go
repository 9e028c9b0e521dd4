package reconnect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 9: WaitStart, Status and AwaitReady have the same verdict for each failure.
func TestStatusHasVerdictOfWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var waits []backoff.Class
		o := withPolicy(every(time.Second))
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
			waits = append(waits, w.Verdict.Class)
		}}
		c := s.open(&o)
		for i, err := range []error{
			answered(404), answered(404), errLost, &conn.ProtocolError{Err: errLost}, answered(401),
			backoff.Refresh(errLost), backoff.Refresh(errLost), answered(503),
		} {
			s.wantDial().refuse(err)
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
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, hung := s.hang(&o)
		beside := s.wantDial()
		beside.refuse(answered(404))
		require.ErrorIs(t, c.Status().Err, answered(404))
		require.Equal(t, backoff.ClassRetry, c.Status().Verdict)
		hung.accept()
		require.NoError(t, c.AwaitReady(t.Context()))
	})
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.wantDial()
		old.Fail(&conn.CloseError{Code: 1008})
		time.Sleep(time.Second)
		require.ErrorContains(t, c.Status().Err, "1008")
		require.Equal(t, backoff.ClassRetry, c.Status().Verdict)
		d.accept()
		require.NoError(t, c.AwaitReady(t.Context()))
	})
}
