package reconnect_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// A watch begins with the next event, that of a session that is being dialed included, and ends
// with stop.
func TestAWatchSeesWhatFollows(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var own, first, second notes
		o := withPolicy(every(time.Second))
		o.Run.Trace = recorder(&own)
		c := s.open(&o)
		d := s.wantDial()
		stop := c.Watch(recorder(&first))
		peer := d.accept()
		stopSecond := c.Watch(recorder(&second))
		peer.Fail(errLost)
		synctest.Wait()
		stop()
		stop()
		s.wantDial().accept()
		stopSecond()
		closeAndWait(c)
		require.Equal(t, []string{"dialed ok", "session 1", "ready 1", "session 1 ended", "wait"}, first.all())
		require.Equal(t, []string{"session 1 ended", "wait", "waited", "dial", "dialed ok", "session 2", "ready 2"}, second.all())
		require.Len(t, own.all(), 13)
	})
}

// A Trace that watches twice is called twice, and each stop ends one of them.
func TestOneTraceMayWatchTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		trace := recorder(&seen)
		o := withPolicy(every(time.Second))
		o.Run.Trace = reconnect.JoinTraces(trace, nil)
		c := s.open(&o)
		c.Watch(nil)
		stop := c.Watch(trace)
		c.Watch(trace)
		stop()
		d := s.wantDial()
		before := len(seen.all())
		d.accept()
		require.Equal(t, []string{"dialed ok", "dialed ok", "session 1", "session 1", "ready 1", "ready 1"}, seen.all()[before:])
	})
}

// A watch that begins while a function hangs sees that it is overdue, and nothing after stop.
func TestAWatchSeesWhatHangsUntilStop(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		release := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(release) })
		defer letGo()
		c := s.open(&reconnect.Options{OnSession: func(context.Context, *reconnect.Opening) error { <-release; return nil }})
		s.wantDial().accept()
		c.Close()
		var late notes
		time.Sleep(time.Second)
		stop := c.Watch(&reconnect.Trace{Overdue: func(o reconnect.Overdue) { late.add(fmt.Sprint(o.What, " ", o.Since)) }})
		time.Sleep(time.Minute)
		seen := late.all()
		require.Contains(t, seen, "OnSession 5s")
		require.Contains(t, seen, "OnSession 40s")
		stop()
		time.Sleep(time.Hour)
		require.Equal(t, seen, late.all())
		letGo()
		<-c.Done()
	})
}

// A watch that begins or ends during a probe sees the hooks between.
func TestAWatchMayBeginAndEndDuringAProbe(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := withPolicy(every(time.Second))
		o.Liveness.Limit = time.Minute
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.PongAfter(2 * time.Second)
		var late notes
		time.Sleep(21 * time.Second) // a probe began at 20 s
		stop := c.Watch(&reconnect.Trace{
			ProbeStart: func(reconnect.ProbeStart) { late.add("start") }, ProbeDone: func(reconnect.ProbeDone) { late.add("done") },
		})
		time.Sleep(time.Second + time.Second/2)
		require.Equal(t, []string{"done"}, late.all())
		time.Sleep(20 * time.Second) // during the next one
		stop()
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"done", "start"}, late.all())
		closeAndWait(c)
	})
}

// Watches may begin and end at any time, and none is lost.
func TestWatchesMayBeginAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c := s.open(&o)
		d := s.wantDial()
		var seen notes
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				stop := c.Watch(recorder(&seen))
				if i%2 == 0 {
					stop()
				}
			})
		}
		all.Wait()
		d.accept()
		require.Len(t, seen.all(), 16*3)
	})
}

// The age is that of the oldest message that waits, whether Send or Write has queued it.
func TestStatsShowTheAgeOfTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		require.Zero(t, c.Stats().QueuedAge)
		queue(t, c, "a")
		time.Sleep(2 * time.Second)
		queue(t, c, "b")
		time.Sleep(time.Second)
		require.Equal(t, 3*time.Second, c.Stats().QueuedAge)
		s.wantDial().accept()
		require.Zero(t, c.Stats().QueuedAge)
	})
}

// The silence is that of the session that is ready, by its bytes or its messages.
func TestStatsShowTheSilenceOfThePeer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := withPolicy(every(time.Second))
		o.Liveness.Limit = time.Minute
		c := s.open(&o)
		d := s.wantDial()
		time.Sleep(time.Second)
		require.Zero(t, c.Stats().Silence)
		peer := d.accept()
		time.Sleep(7 * time.Second)
		require.Equal(t, 7*time.Second, c.Stats().Silence)
		time.Sleep(14 * time.Second) // a probe after 20 s was answered
		require.Equal(t, time.Second, c.Stats().Silence)
		peer.Fail(errLost)
		synctest.Wait()
		require.Zero(t, c.Stats().Silence)
	})
}
