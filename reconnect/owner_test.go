package reconnect_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 1.
func TestTheLostConnectionIsClosedBeforeTheNextDial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		s.open(&o)
		peer := s.wantDial().accept()
		peer.Fail(errLost)
		s.wantDial()
		require.True(t, peer.Closed())
	})
}

// Promise 1.
func TestAtMostTwoDialsAreInFlight(t *testing.T) {
	for name, one := range map[string]bool{"two": false, "OneConnection": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := run(every(time.Second))
				o.Run.OneConnection = one
				c := s.open(&o)
				d := s.wantDial()
				c.Kick()
				if !one {
					require.Zero(t, s.wantDial().at)
				}
				for range 3 {
					c.Kick()
					c.Redial(0, errLost)
					s.wantNoDial()
				}
				d.accept()
				time.Sleep(time.Hour)
				s.wantNoDial()
			})
		})
	}
}

// Promises 1 and 11.
func TestAConnectionThatComesAfterCloseIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *scene) {
		late := conntest.NewFake(nil)
		overdue := make(chan string, 1)
		dial := func(context.Context) (conn.Conn, error) {
			time.Sleep(8 * time.Second) // ignores its context
			return late, nil
		}
		c, err := reconnect.New(reconnect.DialFunc(dial), &reconnect.Options{Run: reconnect.RunOptions{Trace: &reconnect.Trace{
			Overdue: func(o reconnect.Overdue) { what := o.What; overdue <- what },
		}}})
		require.NoError(t, err)
		synctest.Wait()
		start := time.Now()
		c.Close()
		<-c.Done()
		require.Equal(t, 8*time.Second, time.Since(start), "it is waited for")
		require.Equal(t, "dial", <-overdue)
		require.True(t, late.Closed())
	})
}

// Promise 1, for a Run over any kind of connection.
func TestRunClosesWhatALateDialBringsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, w := io.Pipe()
		err := reconnect.Run(ctx, func(context.Context) (*io.PipeReader, error) {
			time.Sleep(2 * time.Second)
			return r, nil
		}, func(context.Context, *io.PipeReader, *reconnect.Session) error {
			t.Error("serve was called with a connection that came too late")
			return nil
		}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = w.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}
