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
		inEachForm(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			o.WhenDown = down
			c, d := s.down(&o)
			first := awaiting(t.Context(), c)
			require.Equal(t, waits, len(first) == 0)
			peer := d.accept()
			if waits {
				require.Equal(t, s.session, <-first)
			} else {
				require.ErrorIs(t, (<-first).(error), reconnect.ErrNotReady)
			}
			require.Equal(t, s.session, <-awaiting(t.Context(), c))
			peer.Fail(errLost)
			synctest.Wait()
			second := awaiting(t.Context(), c)
			require.Equal(t, waits, len(second) == 0)
			s.wantDial().accept()
			require.Equal(t, s.session+1, <-awaiting(t.Context(), c))
			if waits {
				require.Equal(t, s.session+1, <-second)
			} else {
				require.ErrorIs(t, (<-second).(error), errLost)
			}
		})
	}
}

// While a rotation has closed the old session first, AwaitSession waits, whatever WhenDown says.
func TestAwaitSessionFollowsARotation(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c, _ := s.settled(&o)
		c.Rotate(s.session, reconnect.Advice{})
		d := s.wantDial()
		result := awaiting(t.Context(), c)
		closed := s.form.overlap == reconnect.OverlapBreakFirst
		require.Equal(t, closed, len(result) == 0)
		d.accept()
		want := s.session
		if closed {
			want++
		}
		require.Equal(t, want, <-result)
		require.Equal(t, s.session+1, <-awaiting(t.Context(), c))
	})
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
			inEachForm(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Second))
				o.WhenDown = reconnect.WhenDownWait
				c, d := s.down(&o)
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
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, _ := s.down(o)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("kept")}))
		result := awaiting(t.Context(), c)
		require.Empty(t, result)
		go c.Shutdown(context.Background()) // ends with the Conn
		synctest.Wait()
		require.Len(t, result, 1)
		require.ErrorIs(t, (<-result).(error), net.ErrClosed)
	})
}
