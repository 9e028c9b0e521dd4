package reconnect_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 11: a connection that dies while it is being shut down is not dialed again,
// and the end is the one that was asked for.
func TestShutdownOutlivesALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Hold()
		go c.Write(t.Context(), text("x"))
		synctest.Wait()
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		peer.Fail(errLost)
		synctest.Wait()
		s.wantNoDial()
		<-shut // the peer was not told, which may be an error
		require.Equal(t, net.ErrClosed, c.Err())
		require.Equal(t, net.ErrClosed, c.Status().Err)
		require.Zero(t, s.now())
	})
}

// Promise 11: Close cuts a Shutdown short.
func TestCloseEndsAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Mute()
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		time.Sleep(time.Second)
		quit(c)
		require.NoError(t, <-shut)
		require.Equal(t, time.Second, s.now())
	})
}

func TestShutdownWithoutATimeoutCuts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{CloseTimeout: -1})
		peer := s.wantDial().accept()
		peer.Mute()
		require.NoError(t, c.Shutdown(t.Context()))
		require.True(t, peer.Closed())
		_, _, polite := peer.ClosedWith()
		require.False(t, polite)
		require.Zero(t, s.now())
	})
}

// Promise 11: also if the supervisor is held up before it has begun to watch over the
// session.
func TestShutdownCutsWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hold := make(chan struct{})
		c := s.open(&reconnect.Options{Run: reconnect.RunOptions{
			Trace: &reconnect.Trace{SessionStart: func(*reconnect.Session) { <-hold }},
		}})
		peer := s.wantDial().accept()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), errLost)
		require.Equal(t, time.Second, s.now())
		require.True(t, peer.Closed())
		close(hold)
		<-c.Done()
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// Promises 11 and 14.
func TestShutdownInsideACallbackReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		told := make(chan error, 1)
		c = s.open(&reconnect.Options{OnMessage: func(ctx context.Context, _ reconnect.Message) { told <- c.Shutdown(ctx) }})
		peer := s.wantDial().accept()
		peer.Deliver(text("bye"))
		<-c.Done()
		require.ErrorIs(t, <-told, context.Canceled)
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}

// Promises 11 and 14: the dialer too is a callback.
func TestCloseInsideADialReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *scene) {
		made := make(chan *reconnect.Conn, 1)
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			return nil, (<-made).Close()
		}), nil)
		require.NoError(t, err)
		made <- c
		<-c.Done()
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// half is a connection whose farewell is the end of its stream, which cannot be sent.
type half struct {
	*conntest.Fake
	err error
}

func (h *half) CloseWrite() error { return h.err }

// A farewell that fails is reported, and ends the connection all the same; a
// connection that has none is closed.
func TestAFarewellThatFailsIsReported(t *testing.T) {
	for _, test := range []struct{ fails, want error }{{errLost, errLost}, {errors.ErrUnsupported, nil}} {
		inBubble(t, func(t *testing.T, s *scene) {
			h := &half{conntest.NewFake(nil), test.fails}
			c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return h, nil }), nil)
			require.NoError(t, err)
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
			err = c.Shutdown(t.Context())
			if test.want == nil {
				require.NoError(t, err)
				_, _, polite := h.ClosedWith()
				require.True(t, polite)
			} else {
				require.ErrorIs(t, err, test.want)
			}
			<-c.Done()
			require.True(t, h.Closed())
			require.Zero(t, s.now())
		})
	}
}
