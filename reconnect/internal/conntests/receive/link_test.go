package receive_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The cause of a loss is the first one, and not what followed from it.
func TestTheFirstCauseOfALossIsKept(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		busy := make(chan struct{})
		causes := make(chan error, 1)
		o.OnMessage = func(context.Context, reconnect.Message) { <-busy }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { causes <- s.Cause }
		c := s.Open(&o)
		s.WantDial().Accept().Deliver(scene.Text("x"))
		synctest.Wait()
		c.Redial(1, scene.ErrLost)
		c.Redial(1, errors.New("another"))
		close(busy)
		require.Equal(t, scene.ErrLost, <-causes)
	})
}

// Promise 9: the code of a close frame decides the verdict.
func TestACloseCodeReachesTheReaderAndTheVerdict(t *testing.T) {
	for code, class := range map[websocket.StatusCode]backoff.Class{
		1000: scene.Retry, 1001: scene.Retry, 1012: scene.Retry, 1013: scene.Overload,
		4000: scene.Retry, 4999: scene.Retry, 1008: scene.Slow,
	} {
		scene.WithWSServer(t, conntest.CloseWith(code, "bye"), func(t *testing.T, server *scene.WSServer) {
			o := scene.WithPolicy(scene.Every(time.Hour))
			verdict := make(chan backoff.Class, 1)
			o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
				verdict <- backoff.Classify(w.Cause).Class
			}}
			c := server.Open(t, &o)
			require.Equal(t, class, <-verdict, code)
			e, ok := errors.AsType[*conn.CloseError](scene.WantSeam(t, c).Cause)
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
		{scene.ErrLost, 1000},
		{code(4999), 4999}, {code(3000), 3000}, {code(1014), 1014},
		{code(1007), 1007}, {code(1003), 1003}, {code(1001), 1001},
		{code(-1), 1000}, {code(999), 1000}, {code(1004), 1000}, {code(1005), 1000},
		{code(1006), 1000}, {code(1015), 1000}, {code(2999), 1000}, {code(5000), 1000},
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(time.Second))
			c := s.Open(&o)
			peer := s.WantDial().Accept()
			c.Redial(1, test.cause)
			require.Equal(t, test.cause, scene.WantSeam(t, c).Cause)
			got, _, polite := peer.ClosedWith()
			require.True(t, polite)
			require.Equal(t, test.code, got, "%v", test.cause)
			require.Equal(t, time.Second, s.WantDial().At)
		})
	}
}

func TestRedialWithoutATimeoutCuts(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.CloseTimeout = -1
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Mute()
		c.Redial(1, scene.ErrLost)
		require.True(t, peer.Closed())
		_, _, polite := peer.ClosedWith()
		require.False(t, polite)
		require.Equal(t, scene.ErrLost, scene.WantSeam(t, c).Cause)
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

// Redial waits 1 s for a peer that does not answer. Nothing is read or written meanwhile, and Close
// does not wait for it.
func TestAPoliteRedialHasALimit(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Mute()
		c.Redial(1, scene.ErrLost)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("x")), reconnect.ErrNotReady)
		d := s.WantDial()
		require.Equal(t, 2*time.Second, d.At)
		peer = d.Accept()
		peer.Mute()
		c.Redial(2, scene.ErrLost)
		synctest.Wait()
		scene.CloseAndWait(c)
		require.Equal(t, 2*time.Second, s.Now())
	})
}

// A shorter CloseTimeout holds for Redial too.
func TestAPoliteRedialTakesNoLongerThanCloseTimeout(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.CloseTimeout = 300 * time.Millisecond
		c := s.Open(&o)
		s.WantDial().Accept().Mute()
		c.Redial(1, scene.ErrLost)
		require.Equal(t, 1300*time.Millisecond, s.WantDial().At)
	})
}

// The default probes after 10 s. The peer is silent when 5 s more have brought nothing.
func TestRedialDoesNotWaitForASilentPeer(t *testing.T) {
	for after, polite := range map[time.Duration]bool{14999 * time.Millisecond: true, 15 * time.Second: false} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = scene.Alive
			o := scene.WithPolicy(scene.Every(time.Second))
			c := s.Open(&o)
			peer := s.WantDial().Accept()
			peer.Mute()
			time.Sleep(after)
			c.Redial(1, scene.ErrLost)
			want := after + time.Second
			if polite {
				want += time.Second
			}
			require.Equal(t, want, s.WantDial().At)
			_, _, said := peer.ClosedWith()
			require.Equal(t, polite, said)
		})
	}
}

// A peer with nothing to say is not silent if it answers, or if it is not asked.
func TestRedialOfAQuietPeerIsPolite(t *testing.T) {
	for name, fake := range map[string]conntest.FakeOptions{"answers": scene.Alive, "is not asked": {Transport: true}} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = fake
			o := scene.WithPolicy(scene.Every(time.Second))
			c := s.Open(&o)
			peer := s.WantDial().Accept()
			time.Sleep(19 * time.Second)
			c.Redial(1, scene.ErrLost)
			require.Equal(t, 20*time.Second, s.WantDial().At)
			_, _, polite := peer.ClosedWith()
			require.True(t, polite, name)
		})
	}
}

// While nobody reads, what the peer sends is not seen, so that the peer is not silent.
func TestRedialInASlowHandlerIsPolite(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Second))
		var c *reconnect.Conn
		o.OnMessage = func(context.Context, reconnect.Message) {
			time.Sleep(20 * time.Second)
			c.Redial(1, scene.ErrLost)
		}
		c = s.Open(&o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 1)
		require.Equal(t, 21*time.Second, s.WantDial().At)
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}
