package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

func TestStatsCountEachThingOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return errLost
			}
			if err := op.Write(text("login")); err != nil {
				return err
			}
			_, err := op.Read()
			return err
		}
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().accept() // and OnSession fails
		peer := s.wantDial().accept()
		peer.Deliver(text("welcome"), text("1"), text("22"))
		synctest.Wait()
		require.NoError(t, c.Write(t.Context(), text("order")))
		peer.Fail(errLost)
		synctest.Wait()
		require.Equal(t, reconnect.Stats{
			Dials: 3, Failures: 2, Sessions: 2, Lost: 1,
			Received: 3, ReceivedBytes: 10, Written: 2, WrittenBytes: 10,
			Unread: 2, UnreadBytes: 3,
		}, c.Stats())
	})
}
