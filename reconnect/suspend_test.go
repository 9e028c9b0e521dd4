package reconnect_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A machine that was suspended may be elsewhere now, and a probe would wait for an answer.
func TestAConnectionWhoseAddressIsGoneAfterASuspensionIsCut(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		var slept atomic.Int64
		o := scene.WithPolicy(scene.Every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
		c, d := s.Down(&o)
		s.Wrap = func(peer *conntest.Fake) conn.Conn { return scene.Moved(peer.Conn()) }
		d.Accept()
		slept.Store(int64(8 * time.Hour))
		time.Sleep(10 * time.Second) // the next look
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, backoff.ReasonLocal, scene.WantSeam(t, c).Reason)
	})
}

// suspended returns a Conn whose machine was suspended when a message came after 5 s: the wall
// clock advances, and the timers do not.
func suspended(s *scene.Scene) (*reconnect.Conn, *conntest.Fake) {
	s.Fake = scene.Alive
	var slept atomic.Int64
	o := scene.WithPolicy(scene.Every(time.Hour))
	reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
	c, peer := s.Ready(&o)
	time.Sleep(5 * time.Second)
	peer.Hear()
	slept.Store(int64(8 * time.Hour))
	return c, peer
}

// Promise 8: the first look after the machine wakes up probes the peer.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := suspended(s)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State(), "it has answered")
	})
}

// Promise 8: after the machine wakes up, the peer has another third of the limit to answer.
func TestASuspendedMachineFindsOutThatItsPeerIsDead(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := suspended(s)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 20*time.Second, s.Now())
	})
}

// Promise 8: a suspension never makes the verdict later than it would be without one.
func TestASuspendedMachineJudgesNoLaterThanOneThatWasNot(t *testing.T) {
	for _, awake := range []time.Duration{1, 9, 11, 19, 21, 29} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = scene.Alive
			var slept atomic.Int64
			o := scene.WithPolicy(scene.Every(time.Hour))
			reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
			c, peer := s.Ready(&o)
			peer.Mute()
			time.AfterFunc(awake*time.Second, func() { slept.Store(int64(time.Hour)) })
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.LessOrEqual(t, s.Now(), 30*time.Second)
		})
	}
}

// A wall clock that is set back does not look like a suspension.
func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		back := time.Duration(0)
		o := scene.WithPolicy(scene.Every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { back -= time.Hour; return time.Now().Add(back) })
		c, peer := s.Ready(&o)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.Now())
	})
}

// Expected gets the time of the wall clock.
func TestExpectedGetsTheWallClock(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		wall := time.Date(2027, 1, 4, 9, 30, 0, 0, time.UTC)
		o := scene.StallOptions(time.Second)
		reconnect.SetWallClock(&o, func() time.Time { return wall })
		o.Stall.Expected = func(at time.Time) bool {
			require.Equal(t, wall, at)
			return false
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}
