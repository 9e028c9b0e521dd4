package run_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestStatsCountEachThingOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		// OnSession fails in the first session, and logs in by the second.
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return scene.ErrLost
			}
			if err := op.Write(scene.Text("login")); err != nil {
				return err
			}
			_, err := op.Read()
			return err
		}
		// A dial that fails, a session that does not open, a session that works and is lost.
		c := s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept() // and OnSession fails
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("welcome"), scene.Text("1"), scene.Text("22"))
		synctest.Wait()
		require.NoError(t, c.Write(t.Context(), scene.Text("order")))
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		// Each of them counts once.
		require.Equal(t, reconnect.Stats{
			Dials: 3, Failures: 2, Sessions: 2, Lost: 1,
			Received: 3, ReceivedBytes: 10, Written: 2, WrittenBytes: 10,
			Unread: 2, UnreadBytes: 3,
		}, c.Stats())
	})
}

func TestStatsCountEachFateOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 2
		c := s.Open(o)
		scene.Queue(t, c, "a", "b")
		require.Error(t, c.Send(reconnect.Outgoing{Message: scene.Text("refused")}))
		peer := s.WantDial().Accept()
		require.Equal(t, "a b", scene.Written(peer))
		peer.Hold()
		scene.Queue(t, c, "unknown", "kept")
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		stats := c.Stats()
		require.Equal(t, []uint64{2, 2, 1, 1, 1},
			[]uint64{stats.Written, stats.WrittenBytes, stats.Dropped, stats.Unknown, stats.Queued})
		scene.CloseAndWait(c)
		require.Equal(t, uint64(2), c.Stats().Dropped)
		require.Zero(t, c.Stats().Queued)
	})
}

// Stats reports how many messages are queued, and of how many bytes.
func TestStatsShowWhatIsQueued(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.Queue(t, c, "a", "bcd")
		st := c.Stats()
		require.Equal(t, uint64(2), st.Queued)
		require.Equal(t, uint64(4), st.QueuedBytes)
		require.Equal(t, "a bcd", scene.Written(s.WantDial().Accept()))
		require.Zero(t, c.Stats().QueuedBytes)
	})
}

// Promise 11: Close returns at once, and Done waits for a callback that runs.
func TestDoneWaitsForARunningCallback(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var late scene.Notes
		var returned atomic.Bool
		c := s.Open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(6 * time.Second); returned.Store(true) },
			Run: reconnect.RunOptions{
				Trace: &reconnect.Trace{Overdue: func(o reconnect.Overdue) { late.Add(o.What) }},
			},
		})
		s.WantDial().Accept().Deliver(scene.Text("x"))
		synctest.Wait()
		c.Close()
		require.Zero(t, s.Now())
		require.False(t, returned.Load())
		<-c.Done()
		require.True(t, returned.Load())
		require.Equal(t, []string{"OnMessage"}, late.All())
	})
}

// Promise 11: Overdue names a probe that ignores its context.
func TestAProbeThatIgnoresItsContextIsNamed(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var late scene.Notes
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; late.Add(what) }}
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error {
			time.Sleep(22 * time.Second) // it ends a second after the last note
			return nil
		}
		s.Open(&o)
		peer := s.WantDial().Accept()
		time.Sleep(11 * time.Second)
		peer.Fail(scene.ErrLost)
		require.Equal(t, 33*time.Second, s.WantDial().At)
		require.Equal(t, []string{"Probe", "Probe", "Probe"}, late.All(), "after 5, 10 and 20 s")
	})
}

// Promise 11: and so it names what a timer calls.
// The supervisor waits for the hook, but it is not the hook's turn twice.
func TestASlowHookOfARotationIsNamedOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Rotate.Overlap = reconnect.OverlapBreakFirst
		var late scene.Notes
		o.Run.Trace = &reconnect.Trace{
			RotateDone:  func(reconnect.RotateDone) { time.Sleep(12 * time.Second) },
			SlowHandler: func(o reconnect.SlowHandler) { late.Add(o.What) },
			Overdue:     func(o reconnect.Overdue) { late.Add(o.What) },
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		scene.CloseAndWait(c)
		require.Equal(t, []string{"Trace.RotateDone"}, late.All())
	})
}

func TestASlowFunctionBesideTheSupervisorIsNamed(t *testing.T) {
	for name, set := range map[string]func(o *reconnect.Options, slow func()){
		"KeepAlive.Message": func(o *reconnect.Options, slow func()) {
			o.KeepAlive = reconnect.KeepAlive{
				Every:   time.Second,
				Message: func() conn.Message { slow(); return scene.Text("idle") },
			}
		},
		"Rotate.Allowed": func(o *reconnect.Options, slow func()) {
			o.Rotate = reconnect.Rotation{After: time.Second, Allowed: func(time.Time) bool { slow(); return false }}
		},
		"Trace.RotateStart": func(o *reconnect.Options, slow func()) {
			o.Rotate.After = time.Second
			o.Run.Trace.RotateStart = func(reconnect.RotateStart) { slow() }
		},
		"Trace.RotateDone": func(o *reconnect.Options, slow func()) {
			o.Rotate = reconnect.Rotation{After: time.Second, Overlap: reconnect.OverlapBreakFirst}
			o.Run.Trace.RotateDone = func(reconnect.RotateDone) { slow() }
		},
		"Stall.Expected": func(o *reconnect.Options, slow func()) {
			o.Stall = reconnect.Stall{Limit: time.Hour, Expected: func(time.Time) bool { slow(); return false }}
		},
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(time.Second))
			var slow scene.Notes
			o.Run.Trace = &reconnect.Trace{SlowHandler: func(e reconnect.SlowHandler) { slow.Add(e.What) }}
			var once sync.Once
			begun := make(chan struct{})
			set(&o, func() { once.Do(func() { close(begun); time.Sleep(12 * time.Second) }) })
			s.Open(&o)
			peer := s.WantDial().Accept()
			<-begun
			peer.Fail(scene.ErrLost)
			s.WantDial().Accept()
			require.Equal(t, []string{name}, slow.All())
		})
	}
}
