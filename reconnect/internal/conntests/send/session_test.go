package send_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
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
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(time.Second))
			o.WhenDown = down
			c, d := s.Down(&o)
			first := awaiting(t.Context(), c)
			require.Equal(t, waits, len(first) == 0)
			peer := d.Accept()
			if waits {
				require.Equal(t, s.Session, <-first)
			} else {
				require.ErrorIs(t, (<-first).(error), reconnect.ErrNotReady)
			}
			require.Equal(t, s.Session, <-awaiting(t.Context(), c))
			peer.Fail(scene.ErrLost)
			synctest.Wait()
			second := awaiting(t.Context(), c)
			require.Equal(t, waits, len(second) == 0)
			s.WantDial().Accept()
			require.Equal(t, s.Session+1, <-awaiting(t.Context(), c))
			if waits {
				require.Equal(t, s.Session+1, <-second)
			} else {
				require.ErrorIs(t, (<-second).(error), scene.ErrLost)
			}
		})
	}
}

// While a rotation has closed the old session first, AwaitSession waits, whatever WhenDown says.
func TestAwaitSessionFollowsARotation(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, _ := s.Settled(&o)
		c.Rotate(s.Session, reconnect.Advice{})
		d := s.WantDial()
		result := awaiting(t.Context(), c)
		closed := s.Form.Overlap == reconnect.OverlapBreakFirst
		require.Equal(t, closed, len(result) == 0)
		d.Accept()
		want := s.Session
		if closed {
			want++
		}
		require.Equal(t, want, <-result)
		require.Equal(t, s.Session+1, <-awaiting(t.Context(), c))
	})
}

func TestAwaitSessionEndsWithItsContextAndTheConn(t *testing.T) {
	gone := errors.New("gone")
	for name, end := range map[string]func(*reconnect.Conn, *scene.PendingDial, context.CancelCauseFunc){
		"context": func(_ *reconnect.Conn, _ *scene.PendingDial, cancel context.CancelCauseFunc) { cancel(gone) },
		"Close":   func(c *reconnect.Conn, _ *scene.PendingDial, _ context.CancelCauseFunc) { c.Close() },
		"Shutdown": func(c *reconnect.Conn, _ *scene.PendingDial, _ context.CancelCauseFunc) {
			go c.Shutdown(context.Background())
		},
		"verdict": func(_ *reconnect.Conn, d *scene.PendingDial, _ context.CancelCauseFunc) {
			d.Refuse(backoff.Permanent(gone))
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Second))
				o.WhenDown = reconnect.WhenDownWait
				c, d := s.Down(&o)
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
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, _ := s.Down(o)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("kept")}))
		result := awaiting(t.Context(), c)
		require.Empty(t, result)
		go c.Shutdown(context.Background()) // ends with the Conn
		synctest.Wait()
		require.Len(t, result, 1)
		require.ErrorIs(t, (<-result).(error), net.ErrClosed)
	})
}
