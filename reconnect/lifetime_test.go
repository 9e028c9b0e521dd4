package reconnect_test

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
)

func TestStatsCountEachThingOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		// OnSession fails in the first session, and logs in by the second.
		o := withPolicy(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return errLost
			}
			if err := op.Write(text("login")); err != nil {
				return err
			}
			_, err := op.Read()
			return err
		}
		// A dial that fails, a session that does not open, a session that works and is lost.
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().accept() // and OnSession fails
		peer := s.wantDial().accept()
		peer.Deliver(text("welcome"), text("1"), text("22"))
		synctest.Wait()
		require.NoError(t, c.Write(t.Context(), text("order")))
		peer.Fail(errLost)
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
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 2
		c := s.open(o)
		queue(t, c, "a", "b")
		require.Error(t, c.Send(reconnect.Outgoing{Message: text("refused")}))
		peer := s.wantDial().accept()
		require.Equal(t, "a b", written(peer))
		peer.Hold()
		queue(t, c, "unknown", "kept")
		synctest.Wait()
		peer.Fail(errLost)
		synctest.Wait()
		stats := c.Stats()
		require.Equal(t, []uint64{2, 2, 1, 1, 1},
			[]uint64{stats.Written, stats.WrittenBytes, stats.Dropped, stats.Unknown, stats.Queued})
		closeAndWait(c)
		require.Equal(t, uint64(2), c.Stats().Dropped)
		require.Zero(t, c.Stats().Queued)
	})
}

// Stats reports how many messages are queued, and of how many bytes.
func TestStatsShowWhatIsQueued(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a", "bcd")
		st := c.Stats()
		require.Equal(t, uint64(2), st.Queued)
		require.Equal(t, uint64(4), st.QueuedBytes)
		require.Equal(t, "a bcd", written(s.wantDial().accept()))
		require.Zero(t, c.Stats().QueuedBytes)
	})
}

// Promise 11: Close returns at once, and Done waits for a callback that runs.
func TestDoneWaitsForARunningCallback(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var late notes
		var returned atomic.Bool
		c := s.open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(6 * time.Second); returned.Store(true) },
			Run:       reconnect.RunOptions{Trace: &reconnect.Trace{Overdue: func(o reconnect.Overdue) { late.add(o.What) }}},
		})
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		c.Close()
		require.Zero(t, s.now())
		require.False(t, returned.Load())
		<-c.Done()
		require.True(t, returned.Load())
		require.Equal(t, []string{"OnMessage"}, late.all())
	})
}

// Promise 11: Overdue names a probe that ignores its context.
func TestAProbeThatIgnoresItsContextIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		var late notes
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; late.add(what) }}
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error {
			time.Sleep(22 * time.Second) // it ends a second after the last note
			return nil
		}
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(11 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, 33*time.Second, s.wantDial().at)
		require.Equal(t, []string{"Probe", "Probe", "Probe"}, late.all(), "after 5, 10 and 20 s")
	})
}

// Promise 11: and so it names what a timer calls.
// The supervisor waits for the hook, but it is not the hook's turn twice.
func TestASlowHookOfARotationIsNamedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		o.Rotate.Overlap = reconnect.OverlapBreakFirst
		var late notes
		o.Run.Trace = &reconnect.Trace{
			RotateDone:  func(reconnect.RotateDone) { time.Sleep(12 * time.Second) },
			SlowHandler: func(o reconnect.SlowHandler) { late.add(o.What) },
			Overdue:     func(o reconnect.Overdue) { late.add(o.What) },
		}
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().accept()
		closeAndWait(c)
		require.Equal(t, []string{"Trace.RotateDone"}, late.all())
	})
}

func TestASlowFunctionBesideTheSupervisorIsNamed(t *testing.T) {
	for name, set := range map[string]func(o *reconnect.Options, slow func()){
		"KeepAlive.Message": func(o *reconnect.Options, slow func()) {
			o.KeepAlive = reconnect.KeepAlive{Every: time.Second, Message: func() conn.Message { slow(); return text("idle") }}
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
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(time.Second))
			var slow notes
			o.Run.Trace = &reconnect.Trace{SlowHandler: func(e reconnect.SlowHandler) { slow.add(e.What) }}
			var once sync.Once
			begun := make(chan struct{})
			set(&o, func() { once.Do(func() { close(begun); time.Sleep(12 * time.Second) }) })
			s.open(&o)
			peer := s.wantDial().accept()
			<-begun
			peer.Fail(errLost)
			s.wantDial().accept()
			require.Equal(t, []string{name}, slow.all())
		})
	}
}
