package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// alive is a fake that pings and notes bytes, as a WebSocket does.
var alive = conntest.FakeOptions{Pings: true, Idles: true}

// Promise 8: 30 s at the defaults, and two probes.
func TestASilentPeerIsDeadAfterTheLimit(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{alive, {Pings: true}} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = fake
			o := run(every(time.Hour))
			c := s.open(&o)
			peer := s.wantDial().accept()
			peer.Mute()
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.Equal(t, 30*time.Second, s.now())
			require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
			require.Equal(t, 2, peer.Pings())
			require.Equal(t, uint64(2), c.Stats().Probes)
		})
	}
}

// Promise 8: a peer that answers lives, at one ping for each third of the limit.
func TestAPeerThatAnswersPingsLives(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{alive, {Pings: true}} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = fake
			c := s.open(nil)
			peer := s.wantDial().accept()
			time.Sleep(time.Hour + time.Second)
			require.Equal(t, reconnect.StateReady, c.State())
			require.Equal(t, 360, peer.Pings())
		})
	}
}

// Promise 8: any byte is life, so a peer that talks is not pinged.
func TestAnyByteIsLife(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(nil)
		peer := s.wantDial().accept()
		peer.Mute()
		for range 100 {
			time.Sleep(9 * time.Second)
			peer.Hear() // half a message, say
		}
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, peer.Pings())
	})
}

// Promise 8: one answer between two probes starts it all over.
func TestALateAnswerIsAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(nil)
		peer := s.wantDial().accept()
		peer.Mute()
		for i := range 10 {
			time.Sleep(29 * time.Second)
			require.Equal(t, 2*(i+1), peer.Pings())
			peer.Hear()
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 320*time.Second, s.now())
	})
}

// Promise 8: no verdict while the inbox is full, and none from before when it
// is read again.
func TestNoVerdictWhileTheApplicationDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := run(every(time.Hour))
		o.Inbox.Messages = 1
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Mute()
		deliver(peer, 1, 3)
		time.Sleep(time.Hour + 5*time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
		for range 3 {
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		resumed := s.now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.GreaterOrEqual(t, s.now()-resumed, 20*time.Second)
		require.LessOrEqual(t, s.now()-resumed, 30*time.Second)
	})
}

// Promise 8: a handler that is slow is reported, once per call, and costs neither the
// connection nor a message.
func TestASlowHandlerIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var seen, slow notes
		o := run(every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			seen.add(string(m.Data))
			if string(m.Data) != "3" {
				time.Sleep(time.Minute)
			}
		}
		o.Run.Trace = &reconnect.Trace{SlowHandler: func(h reconnect.SlowHandler) {
			slow.add(fmt.Sprint(h.Session, h.Since))
		}}
		c := s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		time.Sleep(59 * time.Second)
		require.Equal(t, []string{"1 10s"}, slow.all())
		time.Sleep(time.Minute)
		require.Equal(t, []string{"1 10s", "1 10s"}, slow.all())
		time.Sleep(time.Hour)
		require.Equal(t, []string{"1", "2", "3"}, seen.all())
		require.Equal(t, reconnect.StateReady, c.State())
		require.Len(t, slow.all(), 2)
	})
}

// Promise 8: nobody is cut for reading slowly, but somebody hears of a reader that
// does not read at all.
func TestAReaderThatDoesNotReadIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var late notes
		c := s.open(&reconnect.Options{Inbox: reconnect.Inbox{Messages: 2}, Run: reconnect.RunOptions{Trace: &reconnect.Trace{
			Overdue: func(o reconnect.Overdue) { late.add(fmt.Sprint(o.What, " ", o.Since, " at ", s.now())) },
		}}})
		deliver(s.wantDial().accept(), 1, 9)
		for range 6 { // slow, but it reads
			time.Sleep(21 * time.Second)
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		require.Empty(t, late.all())
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"reader 30s at 2m40s", "reader 1m0s at 3m10s"}, late.all())
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 8: a program that only writes learns that its peer has hung up, which
// stands behind messages that nobody reads; with and without a way to probe.
func TestAHangUpBehindAFullInboxIsNoticed(t *testing.T) {
	for name, fake := range map[string]conntest.FakeOptions{
		"ping": {Pings: true, Idles: true, HangsUp: true}, "no ping": {HangsUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = fake
				o := run(every(time.Hour))
				c := s.open(&o)
				peer := s.wantDial().accept()
				deliver(peer, 1, 99)
				time.Sleep(time.Hour)
				require.Equal(t, reconnect.StateReady, c.State(), "a slow reader is not cut")
				peer.HangUp()
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				require.ErrorIs(t, c.Status().Err, io.EOF)
				require.LessOrEqual(t, s.now(), time.Hour+10*time.Second)
			})
		})
	}
}

// Promises 8 and 11.
func TestCloseWithASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }})
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		time.Sleep(35 * time.Second)
		quit(c)
		require.Equal(t, time.Minute, s.now(), "the handler is waited for, and not called again")
	})
}

// A connection without a ping is watched by the probe function.
func TestAProbeFunctionAsksForLife(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = conntest.FakeOptions{Idles: true}
		o := run(every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error { return write(text("?")) }
		c := s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, []conn.Message{text("?")}, peer.Written())
		deliver(peer, 1, 1)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 40*time.Second, s.now())
		require.Len(t, peer.Written(), 3)
	})
}

func TestAProbeThatFailsEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { return errLost }
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 10*time.Second, s.now())
		require.ErrorIs(t, c.Status().Err, errLost)
	})
}

// Without a way to ask there is no verdict.
func TestSilenceAloneIsNoVerdict(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept()
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestLivenessCanBeSwitchedOff(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(&reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}})
		s.wantDial().accept().Mute()
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, c.Stats().Probes)
	})
}

// asleep is a Conn whose machine was suspended when a message came after 5 s: its
// wall clock goes on, its timers do not.
func asleep(s *scene) (*reconnect.Conn, *conntest.Fake) {
	s.fake = alive
	var slept atomic.Int64
	o := run(every(time.Hour))
	o.Liveness.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
	c := s.open(&o)
	peer := s.wantDial().accept()
	time.Sleep(5 * time.Second)
	peer.Hear()
	slept.Store(int64(8 * time.Hour))
	return c, peer
}

// Promise 8: the peer is probed at the first look after the wake-up.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := asleep(s)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State(), "it has answered")
	})
}

// Promise 8: and judged by its answer within another third of the limit.
func TestASuspendedMachineFindsOutThatItsPeerIsDead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := asleep(s)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 20*time.Second, s.now())
	})
}

// Promise 8: no later than if nobody had noticed that the machine slept.
func TestASuspendedMachineJudgesNoLaterThanOneThatWasNot(t *testing.T) {
	for _, awake := range []time.Duration{1, 9, 11, 19, 21, 29} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = alive
			var slept atomic.Int64
			o := run(every(time.Hour))
			o.Liveness.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
			c := s.open(&o)
			s.wantDial().accept().Mute()
			time.AfterFunc(awake*time.Second, func() { slept.Store(int64(time.Hour)) })
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.LessOrEqual(t, s.now(), 30*time.Second)
		})
	}
}

// Redial is the application's own verdict.
func TestRedialEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		peer := s.wantDial().accept()
		gap := errors.New("gap in sequence")
		c.Redial(7, errLost) // not this one
		c.Redial(1, gap)
		require.Equal(t, gap, wantSeam(t, c).Cause)
		require.True(t, peer.Closed())
		s.wantDial()
	})
}

// Promise 8: a goodbye is not a silence.
func TestShutdownIsNotDisturbedByProbes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(nil)
		peer := s.wantDial().accept()
		peer.Hold()
		go c.Write(t.Context(), text("x"))
		time.Sleep(9 * time.Second)
		peer.Mute()
		time.AfterFunc(4*time.Second, peer.Release)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded, "because of the mute peer, and of nothing else")
		require.Zero(t, peer.Pings())
		require.Equal(t, 14*time.Second, s.now())
	})
}
