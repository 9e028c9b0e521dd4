package live_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestASessionWithoutDataIsGivenUp(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(10 * time.Second)
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		time.Sleep(10*time.Second - 1)
		require.False(t, peer.Closed())
		require.Equal(t, 10*time.Second, s.WantDial().At)
		require.True(t, peer.Closed())
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, reconnect.ErrStalled)
	})
}

func TestWithoutALimitNoDataIsAskedFor(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = scene.Alive
			o := scene.StallOptions(limit)
			c := s.Open(&o)
			s.WantDial().Accept()
			time.Sleep(24 * time.Hour)
			require.Equal(t, reconnect.StateReady, c.State())
		})
	}
}

// The silence counts from the last message.
func TestDataPutsTheVerdictOff(t *testing.T) {
	for name, edit := range map[string]func(*reconnect.Options){
		"push":    func(o *reconnect.Options) { o.OnMessage = func(context.Context, reconnect.Message) {} },
		"pull":    func(*reconnect.Options) {},
		"discard": func(o *reconnect.Options) { o.Inbox.Overflow = reconnect.InboxDiscard },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.StallOptions(10 * time.Second)
				edit(&o)
				s.Open(&o)
				peer := s.WantDial().Accept()
				for range 5 {
					time.Sleep(9 * time.Second)
					peer.Deliver(scene.Text("m"))
				}
				require.Equal(t, 55*time.Second, s.WantDial().At)
			})
		})
	}
}

// A sign of life is not data: neither half a message nor a pong.
func TestAPongIsNoData(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.StallOptions(time.Minute)
		s.Open(&o)
		peer := s.WantDial().Accept()
		for range 29 {
			time.Sleep(2 * time.Second)
			peer.Hear()
		}
		require.Equal(t, time.Minute, s.WantDial().At)
	})
}

// The market may be closed, so the limit doubles each time, up to 32 times.
func TestTheLimitDoublesWhileNoDataComes(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(time.Second)
		s.Open(&o)
		s.WantDial().Accept()
		var took []time.Duration
		for range 8 {
			begin := s.Now()
			d := s.WantDial()
			took = append(took, (d.At-begin)/time.Second)
			d.Accept()
		}
		require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 32, 32}, took)
	})
}

// One message resets the limit. A loss for another reason does not change it.
func TestDataResetsTheLimit(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(time.Second)
		s.Open(&o)
		s.WantDial().Accept()
		s.WantDial().Accept() // 2 s
		s.WantDial().Accept().Fail(scene.ErrLost)
		peer := s.WantDial().Accept() // still 4 s
		time.Sleep(4*time.Second - 1)
		require.False(t, peer.Closed())
		peer = s.WantDial().Accept() // 8 s
		peer.Deliver(scene.Text("m"))
		begin := s.Now()
		d := s.WantDial()
		require.Equal(t, 8*time.Second, d.At-begin)
		d.Accept() // the limit was reset by the session before
		begin = s.Now()
		d = s.WantDial()
		require.Equal(t, 2*time.Second, d.At-begin)
	})
}

func TestALossWithDataEndsTheRow(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(time.Second)
		s.Open(&o)
		s.WantDial().Accept()
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("m"))
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		s.WantDial().Accept()
		begin := s.Now()
		require.Equal(t, time.Second, s.WantDial().At-begin)
	})
}

// Expected gets the time of the wall clock, and the time without data counts from when Expected
// begins to return true.
func TestSilenceCountsFromWhenDataIsExpected(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(8 * time.Second)
		o.Stall.Expected = func(at time.Time) bool {
			since := at.Sub(s.Start())
			return since >= 30*time.Second && since < 36*time.Second || since >= time.Minute
		}
		s.Open(&o)
		s.WantDial().Accept()
		require.Equal(t, 68*time.Second, s.WantDial().At)
	})
}

func TestExpectedThatAlwaysSaysYesChangesNothing(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(10 * time.Second)
		asked := 0
		o.Stall.Expected = func(time.Time) bool { asked++; return true }
		s.Open(&o)
		peer := s.WantDial().Accept()
		time.Sleep(3 * time.Second)
		peer.Deliver(scene.Text("m"))
		require.Equal(t, 13*time.Second, s.WantDial().At)
		require.Equal(t, 12, asked, "at once, 8 times in a limit, and at its end")
	})
}

// There is no verdict while the application does not read, and for a whole limit after that.
func TestAnApplicationThatDoesNotReadIsNotStalled(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(10 * time.Second)
		o.Inbox.Messages = 1
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("1"), scene.Text("2"))
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
		scene.WantMessage(t, c, 1, "1")
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		scene.WantMessage(t, c, 1, "2")
		require.Equal(t, 70*time.Second, s.WantDial().At)
	})
}

// After a pause that ended between two looks of the timer a whole limit begins, too.
func TestThePauseBeforeALookIsNoSilence(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(10 * time.Second)
		o.Inbox.Messages = 1
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("1"))
		time.Sleep(59 * time.Second) // the next look is after 60 s
		scene.WantMessage(t, c, 1, "1")
		require.Equal(t, 69*time.Second, s.WantDial().At)
	})
}

// While OnMessage works there is no verdict either.
func TestASlowHandlerIsNotStalled(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(10 * time.Second)
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(25 * time.Second) }
		s.Open(&o)
		s.WantDial().Accept().Deliver(scene.Text("m"))
		require.Equal(t, 35*time.Second, s.WantDial().At, "a whole limit after the handler has returned")
	})
}

// Promises 11 and 14.
func TestExpectedMayEndTheConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.StallOptions(8 * time.Second)
		var c *reconnect.Conn
		o.Stall.Expected = func(time.Time) bool {
			if s.Now() > 0 {
				c.Close()
			}
			return true
		}
		c = s.Open(&o)
		s.WantDial().Accept()
		<-c.Done()
		require.Equal(t, time.Second, s.Now())
	})
}

// Promise 11: there is no verdict during Shutdown, which has a limit of its own.
func TestAConnThatLeavesIsNotStalled(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Stall.Limit = time.Second
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a")
		shut := scene.StartShutdown(t.Context(), c)
		time.Sleep(time.Minute)
		peer.Release()
		require.NoError(t, <-shut)
		receipts.Want(t, "a: written 1")
	})
}

// Promise 11: the timer of a session ends with it.
func TestALostConnectionIsNotAskedForData(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		asked := 0
		o.Stall = reconnect.Stall{Limit: 8 * time.Second, Expected: func(time.Time) bool { asked++; return false }}
		s.Open(&o)
		peer := s.WantDial().Accept()
		time.Sleep(1500 * time.Millisecond) // it is asked at 0 s and at 1 s
		peer.Fail(scene.ErrLost)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, asked)
	})
}

// Over real WebSockets: a server that answers pings but sends no data is given up.
func TestAMuteServerIsGivenUp(t *testing.T) {
	scene.WithWSServer(t, conntest.Discard, func(t *testing.T, server *scene.WSServer) {
		o := scene.StallOptions(2 * time.Minute)
		c := server.Ready(t, &o)
		time.Sleep(2*time.Minute - 1)
		require.Positive(t, c.Stats().Probes)
		require.Equal(t, uint64(1), c.Stats().Sessions)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, uint64(2), c.Stats().Sessions)
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, reconnect.ErrStalled)
	})
}
