package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// stallOptions returns options with a limit on the time without data, and without a wait before
// a redial.
func stallOptions(limit time.Duration) reconnect.Options {
	o := withPolicy(every(0))
	o.Stall.Limit = limit
	return o
}

func TestASessionWithoutDataIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(10 * time.Second)
		c := s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(10*time.Second - 1)
		require.False(t, peer.Closed())
		require.Equal(t, 10*time.Second, s.wantDial().at)
		require.True(t, peer.Closed())
		require.ErrorIs(t, wantSeam(t, c).Cause, reconnect.ErrStalled)
	})
}

func TestWithoutALimitNoDataIsAskedFor(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = alive
			o := stallOptions(limit)
			c := s.open(&o)
			s.wantDial().accept()
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
			inBubble(t, func(t *testing.T, s *scene) {
				o := stallOptions(10 * time.Second)
				edit(&o)
				s.open(&o)
				peer := s.wantDial().accept()
				for range 5 {
					time.Sleep(9 * time.Second)
					peer.Deliver(text("m"))
				}
				require.Equal(t, 55*time.Second, s.wantDial().at)
			})
		})
	}
}

// A sign of life is not data: neither half a message nor a pong.
func TestAPongIsNoData(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := stallOptions(time.Minute)
		s.open(&o)
		peer := s.wantDial().accept()
		for range 29 {
			time.Sleep(2 * time.Second)
			peer.Hear()
		}
		require.Equal(t, time.Minute, s.wantDial().at)
	})
}

// The market may be closed, so the limit doubles each time, up to 32 times.
func TestTheLimitDoublesWhileNoDataComes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(time.Second)
		s.open(&o)
		s.wantDial().accept()
		var took []time.Duration
		for range 8 {
			begin := s.now()
			d := s.wantDial()
			took = append(took, (d.at-begin)/time.Second)
			d.accept()
		}
		require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 32, 32}, took)
	})
}

// One message resets the limit. A loss for another reason does not change it.
func TestDataResetsTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(time.Second)
		s.open(&o)
		s.wantDial().accept()
		s.wantDial().accept() // 2 s
		s.wantDial().accept().Fail(errLost)
		peer := s.wantDial().accept() // still 4 s
		time.Sleep(4*time.Second - 1)
		require.False(t, peer.Closed())
		peer = s.wantDial().accept() // 8 s
		peer.Deliver(text("m"))
		begin := s.now()
		d := s.wantDial()
		require.Equal(t, 8*time.Second, d.at-begin)
		d.accept() // the limit was reset by the session before
		begin = s.now()
		d = s.wantDial()
		require.Equal(t, 2*time.Second, d.at-begin)
	})
}

func TestALossWithDataEndsTheRow(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(time.Second)
		s.open(&o)
		s.wantDial().accept()
		peer := s.wantDial().accept()
		peer.Deliver(text("m"))
		synctest.Wait()
		peer.Fail(errLost)
		s.wantDial().accept()
		begin := s.now()
		require.Equal(t, time.Second, s.wantDial().at-begin)
	})
}

// Expected gets the time of the wall clock, and the time without data counts from when Expected
// begins to return true.
func TestSilenceCountsFromWhenDataIsExpected(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(8 * time.Second)
		o.Stall.Expected = func(at time.Time) bool {
			since := at.Sub(s.start())
			return since >= 30*time.Second && since < 36*time.Second || since >= time.Minute
		}
		s.open(&o)
		s.wantDial().accept()
		require.Equal(t, 68*time.Second, s.wantDial().at)
	})
}

func TestExpectedThatAlwaysSaysYesChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(10 * time.Second)
		asked := 0
		o.Stall.Expected = func(time.Time) bool { asked++; return true }
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(3 * time.Second)
		peer.Deliver(text("m"))
		require.Equal(t, 13*time.Second, s.wantDial().at)
		require.Equal(t, 12, asked, "at once, 8 times in a limit, and at its end")
	})
}

// Expected gets the time of the wall clock.
func TestExpectedGetsTheWallClock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		wall := time.Date(2027, 1, 4, 9, 30, 0, 0, time.UTC)
		o := stallOptions(time.Second)
		reconnect.SetWallClock(&o, func() time.Time { return wall })
		o.Stall.Expected = func(at time.Time) bool {
			require.Equal(t, wall, at)
			return false
		}
		c := s.open(&o)
		s.wantDial().accept()
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// There is no verdict while the application does not read, and for a whole limit after that.
func TestAnApplicationThatDoesNotReadIsNotStalled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(10 * time.Second)
		o.Inbox.Messages = 1
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Deliver(text("1"), text("2"))
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
		wantMessage(t, c, 1, "1")
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		wantMessage(t, c, 1, "2")
		require.Equal(t, 70*time.Second, s.wantDial().at)
	})
}

// After a pause that ended between two looks of the timer a whole limit begins, too.
func TestThePauseBeforeALookIsNoSilence(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(10 * time.Second)
		o.Inbox.Messages = 1
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Deliver(text("1"))
		time.Sleep(59 * time.Second) // the next look is after 60 s
		wantMessage(t, c, 1, "1")
		require.Equal(t, 69*time.Second, s.wantDial().at)
	})
}

// While OnMessage works there is no verdict either.
func TestASlowHandlerIsNotStalled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(10 * time.Second)
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(25 * time.Second) }
		s.open(&o)
		s.wantDial().accept().Deliver(text("m"))
		require.Equal(t, 35*time.Second, s.wantDial().at, "a whole limit after the handler has returned")
	})
}

// Promises 11 and 14.
func TestExpectedMayEndTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stallOptions(8 * time.Second)
		var c *reconnect.Conn
		o.Stall.Expected = func(time.Time) bool {
			if s.now() > 0 {
				c.Close()
			}
			return true
		}
		c = s.open(&o)
		s.wantDial().accept()
		<-c.Done()
		require.Equal(t, time.Second, s.now())
	})
}

// Promise 11: there is no verdict during Shutdown, which has a limit of its own.
func TestAConnThatLeavesIsNotStalled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Stall.Limit = time.Second
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		shut := startShutdown(t.Context(), c)
		time.Sleep(time.Minute)
		peer.Release()
		require.NoError(t, <-shut)
		receipts.want(t, "a: written 1")
	})
}

// Promise 11: the timer of a session ends with it.
func TestALostConnectionIsNotAskedForData(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		asked := 0
		o.Stall = reconnect.Stall{Limit: 8 * time.Second, Expected: func(time.Time) bool { asked++; return false }}
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(1500 * time.Millisecond) // it is asked at 0 s and at 1 s
		peer.Fail(errLost)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, asked)
	})
}

// Over real WebSockets: a server that answers pings but sends no data is given up.
func TestAMuteServerIsGivenUp(t *testing.T) {
	withWSServer(t, conntest.Discard, func(t *testing.T, server *wsServer) {
		o := stallOptions(2 * time.Minute)
		c := server.ready(t, &o)
		time.Sleep(2*time.Minute - 1)
		require.Positive(t, c.Stats().Probes)
		require.Equal(t, uint64(1), c.Stats().Sessions)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, uint64(2), c.Stats().Sessions)
		require.ErrorIs(t, wantSeam(t, c).Cause, reconnect.ErrStalled)
	})
}
