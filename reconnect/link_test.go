package reconnect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The cause of a loss is the first one, and not what followed from it.
func TestTheFirstCauseOfALossIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		busy := make(chan struct{})
		causes := make(chan error, 1)
		o.OnMessage = func(context.Context, reconnect.Message) { <-busy }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { causes <- s.Cause }
		c := s.open(&o)
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		c.Redial(1, errLost)
		c.Redial(1, errors.New("another"))
		close(busy)
		require.Equal(t, errLost, <-causes)
	})
}

// Promise 9: the code of a close frame decides the verdict.
func TestACloseCodeReachesTheReaderAndTheVerdict(t *testing.T) {
	for code, class := range map[websocket.StatusCode]backoff.Class{
		1000: retry, 1001: retry, 1012: retry, 1013: overload, 4000: retry, 4999: retry, 1008: slow,
	} {
		withWSServer(t, conntest.CloseWith(code, "bye"), func(t *testing.T, server *wsServer) {
			o := withPolicy(every(time.Hour))
			verdict := make(chan backoff.Class, 1)
			o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.Wait) { verdict <- backoff.Classify(w.Cause).Class }}
			c := server.open(t, &o)
			require.Equal(t, class, <-verdict, code)
			e, ok := errors.AsType[*conn.CloseError](wantSeam(t, c).Cause)
			require.True(t, ok)
			require.Equal(t, conn.CloseError{Code: int(code), Reason: "bye"}, *e)
			require.ErrorAs(t, c.Status().Err, new(*conn.CloseError))
		})
	}
}

// Redial sends a close frame, with the code of the cause if a close frame may carry it (RFC
// 6455, section 7.4).
func TestRedialIsPolite(t *testing.T) {
	code := func(n int) error { return &conn.CloseError{Code: n} }
	for _, test := range []struct {
		cause error
		code  int
	}{
		{errLost, 1000}, {code(4999), 4999}, {code(3000), 3000}, {code(1014), 1014}, {code(1007), 1007}, {code(1003), 1003}, {code(1001), 1001},
		{code(-1), 1000}, {code(999), 1000}, {code(1004), 1000}, {code(1005), 1000}, {code(1006), 1000}, {code(1015), 1000}, {code(2999), 1000}, {code(5000), 1000},
	} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			c := s.open(&o)
			peer := s.wantDial().accept()
			c.Redial(1, test.cause)
			require.Equal(t, test.cause, wantSeam(t, c).Cause)
			got, _, polite := peer.ClosedWith()
			require.True(t, polite)
			require.Equal(t, test.code, got, "%v", test.cause)
			require.Equal(t, time.Second, s.wantDial().at)
		})
	}
}

func TestRedialWithoutATimeoutCuts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.CloseTimeout = -1
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Mute()
		c.Redial(1, errLost)
		require.True(t, peer.Closed())
		_, _, polite := peer.ClosedWith()
		require.False(t, polite)
		require.Equal(t, errLost, wantSeam(t, c).Cause)
		require.Equal(t, time.Second, s.wantDial().at)
	})
}

// Redial waits for a peer that does not answer, within CloseTimeout. Nothing is read or written
// meanwhile, and Close does not wait for it.
func TestAPoliteRedialHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Mute()
		c.Redial(1, errLost)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Write(t.Context(), text("x")), reconnect.ErrNotReady)
		d := s.wantDial()
		require.Equal(t, 6*time.Second, d.at)
		peer = d.accept()
		peer.Mute()
		c.Redial(2, errLost)
		synctest.Wait()
		closeAndWait(c)
		require.Equal(t, 6*time.Second, s.now())
	})
}
