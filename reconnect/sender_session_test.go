package reconnect_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The tests of sender.go that are about AwaitSession.

// awaiting calls AwaitSession in a goroutine, and returns where its result will be.
func awaiting(ctx context.Context, c *reconnect.Conn) <-chan any {
	result := make(chan any, 1)
	go func() {
		session, err := c.AwaitSession(ctx)
		if err != nil {
			result <- err
			return
		}
		result <- session
	}()
	synctest.Wait()
	return result
}

func TestAwaitSessionWaitsAsWhenDownSays(t *testing.T) {
	for down, waits := range map[reconnect.WhenDown]bool{reconnect.WhenDownFail: false, reconnect.WhenDownWait: true} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			o.WhenDown = down
			c := s.open(&o)
			first := awaiting(t.Context(), c)
			require.Equal(t, waits, len(first) == 0)
			peer := s.wantDial().accept()
			if waits {
				require.Equal(t, uint64(1), <-first)
			} else {
				require.ErrorIs(t, (<-first).(error), reconnect.ErrNotReady)
			}
			require.Equal(t, uint64(1), <-awaiting(t.Context(), c))
			peer.Fail(errLost)
			synctest.Wait()
			second := awaiting(t.Context(), c)
			require.Equal(t, waits, len(second) == 0)
			s.wantDial().accept()
			require.Equal(t, uint64(2), <-awaiting(t.Context(), c))
			if waits {
				require.Equal(t, uint64(2), <-second)
			} else {
				require.ErrorIs(t, (<-second).(error), errLost)
			}
		})
	}
}

// While a rotation has closed the old session first, AwaitSession waits, whatever WhenDown says.
func TestAwaitSessionFollowsARotation(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapBreakFirst} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := rotating(overlap)
			c := s.open(&o)
			s.wantDial().accept()
			c.Rotate(1, reconnect.Advice{})
			d := s.wantDial()
			result := awaiting(t.Context(), c)
			require.Equal(t, overlap == reconnect.OverlapBreakFirst, len(result) == 0)
			d.accept()
			require.Equal(t, map[bool]uint64{true: 2, false: 1}[overlap == reconnect.OverlapBreakFirst], <-result)
			require.Equal(t, uint64(2), <-awaiting(t.Context(), c))
		})
	}
}

func TestAwaitSessionEndsWithItsContextAndTheConn(t *testing.T) {
	gone := errors.New("gone")
	for name, end := range map[string]func(*reconnect.Conn, *pendingDial, context.CancelCauseFunc){
		"context": func(_ *reconnect.Conn, _ *pendingDial, cancel context.CancelCauseFunc) { cancel(gone) },
		"Close":   func(c *reconnect.Conn, _ *pendingDial, _ context.CancelCauseFunc) { c.Close() },
		"Shutdown": func(c *reconnect.Conn, _ *pendingDial, _ context.CancelCauseFunc) {
			go c.Shutdown(context.Background())
		},
		"verdict": func(_ *reconnect.Conn, d *pendingDial, _ context.CancelCauseFunc) { d.refuse(backoff.Permanent(gone)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Second))
				o.WhenDown = reconnect.WhenDownWait
				c := s.open(&o)
				d := s.wantDial()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				result := awaiting(ctx, c)
				end(c, d, cancel)
				synctest.Wait()
				require.Len(t, result, 1)
				err := (<-result).(error)
				require.Equal(t, name != "context", errors.Is(err, net.ErrClosed), err)
				require.Equal(t, name == "context" || name == "verdict", errors.Is(err, gone), err)
				if name != "context" { // the end of the Conn comes before that of the context
					cancel(gone)
					require.ErrorIs(t, (<-awaiting(ctx, c)).(error), net.ErrClosed)
				}
			})
		})
	}
}

// Shutdown may take long, because it waits until what is queued is sent by the next session.
func TestAwaitSessionEndsAsSoonAsShutdownHasBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("kept")}))
		result := awaiting(t.Context(), c)
		require.Empty(t, result)
		go c.Shutdown(context.Background()) // ends with the Conn
		synctest.Wait()
		require.Len(t, result, 1)
		require.ErrorIs(t, (<-result).(error), net.ErrClosed)
	})
}
