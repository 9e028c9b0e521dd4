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

// stalling returns options with a limit on silence of data, and redials at once.
func stalling(limit time.Duration) reconnect.Options {
	o := run(every(0))
	o.Stall.Limit = limit
	return o
}

func TestASessionWithoutDataIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(10 * time.Second)
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
			o := stalling(limit)
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
		"discard": func(o *reconnect.Options) { o.Inbox.Overflow = reconnect.OverflowDiscard },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := stalling(10 * time.Second)
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

// Life is not data: neither half a message nor the answer to a ping.
func TestAPongIsNoData(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := stalling(time.Minute)
		s.open(&o)
		peer := s.wantDial().accept()
		for range 29 {
			time.Sleep(2 * time.Second)
			peer.Hear()
		}
		require.Equal(t, time.Minute, s.wantDial().at)
	})
}

// The market may be closed: twice as long each time, and 32 times in the end.
func TestTheLimitDoublesWhileNoDataComes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(time.Second)
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

// One message is enough, and a loss for another reason changes nothing.
func TestDataResetsTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(time.Second)
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
		d.accept() // the row has begun anew with the last one
		begin = s.now()
		d = s.wantDial()
		require.Equal(t, 2*time.Second, d.at-begin)
	})
}

func TestALossWithDataEndsTheRow(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(time.Second)
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

// Expected is asked about the wall clock, and silence counts from when it says so.
func TestSilenceCountsFromWhenDataIsExpected(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(8 * time.Second)
		o.Stall.Expected = func(at time.Time) bool {
			since := at.Sub(s.start)
			return since >= 30*time.Second && since < 36*time.Second || since >= time.Minute
		}
		s.open(&o)
		s.wantDial().accept()
		require.Equal(t, 68*time.Second, s.wantDial().at)
	})
}

func TestExpectedThatAlwaysSaysYesChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(10 * time.Second)
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

// Who says when the market is open goes by the clock of Liveness.
func TestExpectedIsToldTheWallClock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		wall := time.Date(2027, 1, 4, 9, 30, 0, 0, time.UTC)
		o := stalling(time.Second)
		o.Liveness.Now = func() time.Time { return wall }
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

// No verdict while the application does not read, and a whole limit after that.
func TestAnApplicationThatDoesNotReadIsNotStalled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(10 * time.Second)
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

// A pause that ended a moment ago counts as well: a whole limit begins then.
func TestThePauseBeforeALookIsNoSilence(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(10 * time.Second)
		o.Inbox.Messages = 1
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Deliver(text("1"))
		time.Sleep(59 * time.Second) // the next look is after 60 s
		wantMessage(t, c, 1, "1")
		require.Equal(t, 69*time.Second, s.wantDial().at)
	})
}

// The same for push, where the handler is slow.
func TestASlowHandlerIsNotStalled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(10 * time.Second)
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(25 * time.Second) }
		s.open(&o)
		s.wantDial().accept().Deliver(text("m"))
		require.Equal(t, 35*time.Second, s.wantDial().at, "a whole limit after the handler has returned")
	})
}

// Promises 11 and 14.
func TestExpectedMayEndTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := stalling(8 * time.Second)
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

// Promise 11: Shutdown has a limit of its own.
func TestAConnThatLeavesIsNotStalled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Stall.Limit = time.Second
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		shut := shutdown(t.Context(), c)
		time.Sleep(time.Minute)
		peer.Release()
		require.NoError(t, <-shut)
		told.want(t, "a: written 1")
	})
}

// Promise 11: what looks for data ends with its session.
func TestALostConnectionIsNotAskedForData(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		asked := 0
		o.Stall = reconnect.Stall{Limit: 8 * time.Second, Expected: func(time.Time) bool { asked++; return false }}
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(time.Second)
		peer.Fail(errLost)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, asked)
	})
}

// Over real WebSockets: pings are answered, and a server that is mute is given up.
func TestAMuteServerIsGivenUp(t *testing.T) {
	inVenue(t, conntest.Discard, func(t *testing.T, v *venue) {
		o := stalling(2 * time.Minute)
		c := v.ready(t, &o)
		time.Sleep(2*time.Minute - 1)
		require.Positive(t, c.Stats().Probes)
		require.Equal(t, uint64(1), c.Stats().Sessions)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, uint64(2), c.Stats().Sessions)
		require.ErrorIs(t, wantSeam(t, c).Cause, reconnect.ErrStalled)
	})
}
