package live_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A watch begins with the next event, that of a session that is being dialed included, and ends
// with stop.
func TestAWatchSeesWhatFollows(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var own, first, second scene.Notes
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = scene.Recorder(&own)
		c := s.Open(&o)
		d := s.WantDial()
		stop := c.Watch(scene.Recorder(&first))
		peer := d.Accept()
		stopSecond := c.Watch(scene.Recorder(&second))
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		stop()
		stop()
		s.WantDial().Accept()
		stopSecond()
		scene.CloseAndWait(c)
		require.Equal(t, []string{"dialed ok", "session 1", "ready 1", "session 1 ended", "wait"}, first.All())
		require.Equal(t,
			[]string{"session 1 ended", "wait", "waited", "dial", "dialed ok", "session 2", "ready 2"},
			second.All())
		require.Len(t, own.All(), 13)
	})
}

// A Trace that watches twice is called twice, and each stop ends one of them.
func TestOneTraceMayWatchTwice(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		trace := scene.Recorder(&seen)
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Trace = reconnect.JoinTraces(trace, nil)
		c := s.Open(&o)
		c.Watch(nil)
		stop := c.Watch(trace)
		c.Watch(trace)
		stop()
		d := s.WantDial()
		before := len(seen.All())
		d.Accept()
		require.Equal(t,
			[]string{"dialed ok", "dialed ok", "session 1", "session 1", "ready 1", "ready 1"},
			seen.All()[before:])
	})
}

// A watch that begins while a function hangs sees that it is overdue, and nothing after stop.
func TestAWatchSeesWhatHangsUntilStop(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		release := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(release) })
		defer letGo()
		c := s.Open(&reconnect.Options{
			OnSession: func(context.Context, *reconnect.Opening) error { <-release; return nil },
		})
		s.WantDial().Accept()
		c.Close()
		var late scene.Notes
		time.Sleep(time.Second)
		stop := c.Watch(&reconnect.Trace{
			Overdue: func(o reconnect.Overdue) { late.Add(fmt.Sprint(o.What, " ", o.Since)) },
		})
		time.Sleep(time.Minute)
		seen := late.All()
		require.Contains(t, seen, "OnSession 5s")
		require.Contains(t, seen, "OnSession 40s")
		stop()
		time.Sleep(time.Hour)
		require.Equal(t, seen, late.All())
		letGo()
		<-c.Done()
	})
}

// A watch that begins or ends during a probe sees the hooks between.
func TestAWatchMayBeginAndEndDuringAProbe(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Liveness.Limit = time.Minute
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.PongAfter(2 * time.Second)
		var late scene.Notes
		time.Sleep(21 * time.Second) // a probe began at 20 s
		stop := c.Watch(&reconnect.Trace{
			ProbeStart: func(reconnect.ProbeStart) { late.Add("start") },
			ProbeDone:  func(reconnect.ProbeDone) { late.Add("done") },
		})
		time.Sleep(time.Second + time.Second/2)
		require.Equal(t, []string{"done"}, late.All())
		time.Sleep(20 * time.Second) // during the next one
		stop()
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"done", "start"}, late.All())
		scene.CloseAndWait(c)
	})
}

// Watches may begin and end at any time, and none is lost.
func TestWatchesMayBeginAtOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		d := s.WantDial()
		var seen scene.Notes
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				stop := c.Watch(scene.Recorder(&seen))
				if i%2 == 0 {
					stop()
				}
			})
		}
		all.Wait()
		d.Accept()
		require.Len(t, seen.All(), 16*3)
	})
}

// The age is that of the oldest message that waits, whether Send or Write has queued it.
func TestStatsShowTheAgeOfTheQueue(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		require.Zero(t, c.Stats().QueuedAge)
		scene.Queue(t, c, "a")
		time.Sleep(2 * time.Second)
		scene.Queue(t, c, "b")
		time.Sleep(time.Second)
		require.Equal(t, 3*time.Second, c.Stats().QueuedAge)
		s.WantDial().Accept()
		require.Zero(t, c.Stats().QueuedAge)
	})
}

func TestStatsShowRoundTripOfPing(t *testing.T) {
	scene.WithWSServer(t, conntest.Discard, func(t *testing.T, server *scene.WSServer) {
		c := server.Ready(t, &reconnect.Options{Liveness: reconnect.Liveness{Limit: 30 * time.Second}})
		server.Pipe(t).Latency(conntest.Both, 30*time.Millisecond)
		time.Sleep(9 * time.Second)
		require.Zero(t, c.Stats().RoundTrip)
		time.Sleep(2 * time.Second)
		require.Equal(t, 60*time.Millisecond, c.Stats().RoundTrip)
		server.Network.ResetAll(scene.WSAddr)
		require.Equal(t, 60*time.Millisecond, c.Stats().RoundTrip)
	})
}

// The silence is that of the session that is ready, by its bytes or its messages.
func TestStatsShowTheSilenceOfThePeer(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Liveness.Limit = time.Minute
		c := s.Open(&o)
		d := s.WantDial()
		time.Sleep(time.Second)
		require.Zero(t, c.Stats().Silence)
		peer := d.Accept()
		time.Sleep(7 * time.Second)
		require.Equal(t, 7*time.Second, c.Stats().Silence)
		time.Sleep(14 * time.Second) // a probe after 20 s was answered
		require.Equal(t, time.Second, c.Stats().Silence)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.Zero(t, c.Stats().Silence)
	})
}
