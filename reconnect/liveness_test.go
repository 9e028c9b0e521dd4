package reconnect_test

import (
	"context"
	"errors"
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

// Promise 8: while a handler is slow another goroutine reads, so that the
// peer's pings are answered; no message is lost or overtaken.
func TestASlowHandlerDoesNotStopTheReading(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var seen notes
		o := run(every(time.Hour))
		o.OnMessage = func(m reconnect.Message) {
			seen.add(string(m.Data))
			time.Sleep(time.Minute)
		}
		o.OnSeam = func(*reconnect.Seam) { seen.add("seam") }
		c := s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 1)
		time.Sleep(25 * time.Second)
		deliver(peer, 2, 4)
		require.Equal(t, uint64(4), c.Stats().Received, "read while the first is handled")
		require.Equal(t, []string{"1"}, seen.all())
		time.Sleep(time.Minute)
		peer.Fail(errLost)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		synctest.Wait()
		require.Equal(t, []string{"1", "2", "3", "4", "seam"}, seen.all())
	})
}

// Promises 8 and 11: also with a stand-in at work.
func TestCloseWithASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(&reconnect.Options{OnMessage: func(reconnect.Message) { time.Sleep(time.Minute) }})
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		time.Sleep(35 * time.Second)
		c.Close()
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

// A machine that was suspended probes, and does not judge by the old silence.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var asleep atomic.Int64
		o := run(every(time.Hour))
		o.Liveness.Now = func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) }
		c := s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(5 * time.Second)
		peer.Hear()
		asleep.Store(int64(8 * time.Hour)) // the timers have stood still
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.GreaterOrEqual(t, s.now(), 35*time.Second)
	})
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
