package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Promise 12: who hears of a loss finds it in the status.
func TestTheStatusKnowsOfALossBeforeOnSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		var status reconnect.Status
		o := run(every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(context.Context, *reconnect.Seam) { status = c.Status() }
		c = s.open(&o)
		s.wantDial().refuse(errLost)
		c.Kick()
		peer := s.wantDial().accept()
		require.NoError(t, c.Status().Err, "a ready session is the end of old news")
		peer.Fail(errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.ErrorIs(t, status.Err, errLost)
	})
}

// Promise 12: the supervisor, which is in the handler, has not noticed yet.
func TestTheStatusHasTheCauseOfALossAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		var status reconnect.Status
		o := run(every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			c.Redial(m.Session, errLost)
			status = c.Status()
		}
		c = s.open(&o)
		s.wantDial().accept().Deliver(text("nonsense"))
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.ErrorIs(t, status.Err, errLost)
	})
}

// Redial works for those who discard, too, and its cause is kept.
func TestRedialEndsASessionThatDiscards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.Inbox.Overflow = reconnect.OverflowDiscard
		c := s.open(&o)
		s.wantDial().accept()
		c.Redial(1, nil)
		synctest.Wait()
		require.EqualError(t, c.Status().Err, "redial asked for")
	})
}
