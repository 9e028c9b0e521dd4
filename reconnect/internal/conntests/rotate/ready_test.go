package rotate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
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

var overlaps = map[string]reconnect.Overlap{
	"hold": reconnect.OverlapHold, "mix": reconnect.OverlapMix, "break first": reconnect.OverlapBreakFirst,
}

// A callback that learns of session 2 may have session 2 replaced, though session 1 is still read,
// or its RotateDone runs.
func TestASessionCanBeRotatedInEachCallback(t *testing.T) {
	var rotate func()
	for name, hook := range map[string]func(o *reconnect.Options){
		"SessionReady": func(o *reconnect.Options) {
			o.Run.Trace.SessionReady = func(*reconnect.Session) { rotate() }
		},
		"RotateDone": func(o *reconnect.Options) { o.Run.Trace.RotateDone = func(reconnect.RotateDone) { rotate() } },
		"Layer.Ready": func(o *reconnect.Options) {
			o.Layers = []*reconnect.Layer{{Ready: func(uint64) { rotate() }}}
		},
	} {
		for overlap, way := range overlaps {
			t.Run(name+", "+overlap, func(t *testing.T) {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					o := scene.Rotating(way)
					o.OnMessage = func(context.Context, reconnect.Message) {}
					o.Run.Trace = &reconnect.Trace{}
					hook(&o)
					var c *reconnect.Conn
					rotate = func() { c.Rotate(2, reconnect.Advice{}) }
					c = s.Open(&o)
					s.WantDial().Accept()
					c.Rotate(1, reconnect.Advice{})
					s.WantDial().Accept()
					s.WantDial().Accept()
					time.Sleep(time.Minute)
					require.Equal(t, uint64(2), c.Stats().Rotations)
					require.Equal(t, uint64(3), c.Status().Session)
					s.WantNoDial()
				})
			})
		}
	}
}

// With two connections at once the second rotation waits for the end of the first. Who asks twice
// gets one.
func TestARotationWaitsForTheEndOfTheOneBefore(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c, _, _ := scene.Overlapping(s, &o)
		cause := errors.New("the server leaves")
		c.Rotate(2, reconnect.Advice{Cause: cause})
		c.Rotate(2, reconnect.Advice{})
		d := s.WantDial()
		require.Equal(t, 5*time.Second, d.At) // Drain
		d.Accept()
		time.Sleep(time.Minute)
		scene.WantSeam(t, c)
		require.Equal(t, cause, scene.WantSeam(t, c).Cause)
		s.WantNoDial()
		require.Equal(t, uint64(2), c.Stats().Rotations)
	})
}

// The wait that the server asks for counts from when it asked.
func TestARotationThatHasWaitedLongEnoughBeginsAtOnce(t *testing.T) {
	for wait, at := range map[time.Duration]time.Duration{3 * time.Second: 5 * time.Second, 8 * time.Second: 8 * time.Second} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.Rotating(reconnect.OverlapHold)
			c, _, _ := scene.Overlapping(s, &o)
			c.Rotate(2, reconnect.Advice{Wait: wait})
			require.Equal(t, at, s.WantDial().At)
		})
	}
}

// The seam of the old session comes when it is closed, and the reader waits for that.
func TestTheOldSessionIsClosedNoLongerThanCloseTimeout(t *testing.T) {
	for limit, takes := range map[time.Duration]time.Duration{-1: 0, 300 * time.Millisecond: 300 * time.Millisecond, time.Minute: time.Second} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.Rotating(reconnect.OverlapHold)
			o.CloseTimeout = limit
			c, old, _ := scene.Overlapping(s, &o)
			old.Mute()
			_, err := c.Read(t.Context(), nil)
			require.ErrorAs(t, err, new(*reconnect.Seam))
			require.Equal(t, 5*time.Second+takes, s.Now()) // after Drain
		})
	}
}

func TestTheDialOfARotationIsNotSpread(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.StartSpread = time.Hour
		c := s.Open(&o)
		s.WantDial().Accept()
		began := s.Now()
		c.Rotate(1, reconnect.Advice{})
		require.Equal(t, began, s.WantDial().At)
	})
}

// A session that is lost while its rotation waits is redialed, and the next one is not rotated.
func TestARotationThatWaitsEndsWithItsSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapMix)
		o.Run.Trace = &reconnect.Trace{RotateDone: func(reconnect.RotateDone) { time.Sleep(10 * time.Second) }}
		c, _, next := scene.Overlapping(s, &o)
		c.Rotate(2, reconnect.Advice{})
		next.Fail(scene.ErrLost)
		s.WantDial().Accept()
		time.Sleep(time.Minute)
		s.WantNoDial()
		require.Equal(t, uint64(1), c.Stats().Rotations)
		require.False(t, c.Status().Rotating)
		c.Rotate(3, reconnect.Advice{})
		s.WantDial().Accept()
	})
}

func TestCloseEndsARotationThatWaits(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c, _, _ := scene.Overlapping(s, &o)
		c.Rotate(2, reconnect.Advice{Wait: time.Hour})
		scene.CloseAndWait(c)
		require.Zero(t, s.Now())
	})
}

// The hook that reports the failure may ask again.
func TestARotationThatHasFailedCanBeAskedForInItsHook(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.Trace = &reconnect.Trace{RotateDone: func(d reconnect.RotateDone) {
			if d.Err != nil {
				c.Rotate(d.Session, reconnect.Advice{})
			}
		}}
		c = s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Refuse(backoff.Permanent(scene.ErrLost))
		s.WantDial().Accept()
		require.Equal(t, uint64(2), c.Status().Session)
	})
}

// Conn.Rotate may come in any moment, such as that in which a session becomes ready. Each
// session that AwaitSession returns is rotated as soon as it is there.
func TestRotateAsSoonAsASessionIsReady(t *testing.T) {
	const conns, sessions = 200, 8
	for name, way := range overlaps {
		t.Run(name, func(t *testing.T) {
			for range conns {
				rotateAtOnce(t, way, sessions)
			}
		})
	}
}

// rotateAtOnce asks for the rotation of each of the sessions of a Conn once, and waits until it is
// done. At the end the last session is lost.
func rotateAtOnce(t *testing.T, way reconnect.Overlap, sessions uint64) {
	var mu sync.Mutex
	var last *conntest.Fake
	dial := func(context.Context) (conn.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		last = conntest.NewFake(&scene.Alive)
		return last.Conn(), nil
	}
	o := scene.WithPolicy(scene.Every(time.Microsecond))
	o.Inbox.Overflow, o.Rotate = reconnect.InboxDiscard, reconnect.Rotation{Overlap: way, Drain: time.Nanosecond}
	done := make(chan string, 2*sessions) // has room for all
	o.Run.Trace = &reconnect.Trace{RotateDone: func(d reconnect.RotateDone) { done <- fmt.Sprint(d.Session, d.Err) }}
	c, err := reconnect.New(reconnect.DialFunc(dial), &o)
	require.NoError(t, err)
	defer scene.CloseAndWait(c)
	for n := range sessions {
		awaitSession(t, c, n+1)
		c.Rotate(n+1, reconnect.Advice{})
		select {
		case got := <-done:
			require.Equal(t, fmt.Sprint(n+1, error(nil)), got)
		case <-time.After(20 * time.Second):
			require.FailNow(t, "a rotation is lost", "%d: %+v", n+1, c.Status())
		}
	}
	awaitSession(t, c, sessions+1)
	mu.Lock()
	last.Fail(scene.ErrLost)
	mu.Unlock()
	awaitSession(t, c, sessions+2)
}

// Whoever asks again and again, from before the session is there, gets one rotation, and it is
// done when it is reported as done.
func TestRotateBeforeASessionIsReady(t *testing.T) {
	for range 500 {
		dials := make(chan struct{})
		dial := func(context.Context) (conn.Conn, error) { <-dials; return conntest.NewFake(&scene.Alive).Conn(), nil }
		var c *reconnect.Conn
		present := make(chan uint64, 1)
		o := scene.WithPolicy(scene.Every(time.Microsecond))
		o.Inbox.Overflow, o.Rotate.Drain = reconnect.InboxDiscard, time.Nanosecond
		o.Run.Trace = &reconnect.Trace{RotateDone: func(reconnect.RotateDone) { present <- c.Status().Session }}
		c, err := reconnect.New(reconnect.DialFunc(dial), &o)
		require.NoError(t, err)
		var asker sync.WaitGroup
		asker.Go(func() {
			for c.Stats().Sessions < 2 && c.State() != reconnect.StateClosed {
				c.Rotate(1, reconnect.Advice{})
			}
		})
		close(dials)
		require.Equal(t, uint64(2), <-present)
		awaitSession(t, c, 2)
		scene.CloseAndWait(c)
		asker.Wait()
	}
}

// awaitSession asks until messages are sent by a session, so as to see it in the first moment.
func awaitSession(t *testing.T, c *reconnect.Conn, session uint64) {
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		if got, err := c.AwaitSession(t.Context()); err == nil && got >= session {
			require.Equal(t, session, got)
			return
		}
		runtime.Gosched()
	}
	require.FailNow(t, "no session", "%d: %+v", session, c.Status())
}

// Whoever asks for rotations all the time, also while sessions are lost, gets each of them
// reported once from its begin to its end, and the Conn works. There are many Conns, because
// each rotates only a few times without a pause.
func TestRotateDoesNoHarmAtAnyMoment(t *testing.T) {
	for name, way := range overlaps {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				rotateAtAnyMoment(t, way)
			}
		})
	}
}

// rotateAtAnyMoment requests rotations of a Conn until it has had 20 sessions.
func rotateAtAnyMoment(t *testing.T, way reconnect.Overlap) {
	w := &losers{starts: map[uint64]int{}, ends: map[uint64]int{}}
	o := scene.WithPolicy(scene.Every(time.Microsecond))
	o.Inbox.Overflow, o.Rotate = reconnect.InboxDiscard, reconnect.Rotation{Overlap: way, Drain: 50 * time.Microsecond}
	o.Run.Trace = &reconnect.Trace{RotateStart: w.started, RotateDone: w.done}
	c, err := reconnect.New(w, &o)
	require.NoError(t, err)
	var askers sync.WaitGroup
	for range 2 {
		askers.Go(func() {
			for c.Stats().Sessions < 20 {
				c.Rotate(c.Status().Session, reconnect.Advice{})
				runtime.Gosched()
			}
		})
	}
	askers.Wait()
	require.NoError(t, c.AwaitReady(t.Context()))
	scene.CloseAndWait(c)
	require.Equal(t, w.starts, w.ends)
	for session, n := range w.starts {
		require.Equal(t, 1, n, session)
	}
	require.Positive(t, c.Stats().Rotations)
}

// losers is a dialer whose first 19 connections are lost, within 100 us or, one in four, after 1 ms,
// and a count of the rotations that were reported for each session.
type losers struct {
	mu           sync.Mutex
	dials        int
	starts, ends map[uint64]int
}

func (w *losers) Dial(context.Context) (conn.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fake := conntest.NewFake(&scene.Alive)
	after := time.Duration(w.dials%4) * 30 * time.Microsecond
	if after == 0 {
		after = time.Millisecond
	}
	if w.dials++; w.dials < 20 {
		time.AfterFunc(after, func() { fake.Fail(scene.ErrLost) })
	}
	return fake.Conn(), nil
}

func (w *losers) started(r reconnect.RotateStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts[r.Session]++
}

func (w *losers) done(r reconnect.RotateDone) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[r.Session]++
}

// While a hook of a ready session runs no goroutine reads the session. So the peer may have ended it before
// the next one was ready, and messages between the two may be missing.
func TestSlowReadyHookHasNotOverlapped(t *testing.T) {
	for name, hook := range map[string]func(o *reconnect.Options, slow func()){
		"SessionReady": func(o *reconnect.Options, slow func()) {
			o.Run.Trace.SessionReady = func(*reconnect.Session) { slow() }
		},
		"Layer.Ready": func(o *reconnect.Options, slow func()) {
			o.Layers = []*reconnect.Layer{{Ready: func(uint64) { slow() }}}
		},
	} {
		for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix} {
			t.Run(fmt.Sprint(name, " ", overlap), func(t *testing.T) {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					o := scene.Rotating(overlap)
					o.Run.Trace = &reconnect.Trace{}
					calls := 0
					hook(&o, func() {
						if calls++; calls == 1 {
							time.Sleep(3 * time.Second)
						}
					})
					c := s.Open(&o)
					old := s.WantDial().Accept()
					c.Rotate(1, reconnect.Advice{})
					next := s.WantDial()
					old.Fail(io.EOF)
					time.Sleep(time.Second)
					next.Accept()
					time.Sleep(time.Minute)
					require.False(t, scene.WantSeam(t, c).Overlapped)
				})
			})
		}
	}
}

// Done of a Conn waits for a SlowHandler hook of the session before a rotation.
func TestDoneWaitsForSlowHandlerOfReplacedSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		hook := make(chan struct{})
		o := scene.Rotating(reconnect.OverlapMix)
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			if m.Session == 1 {
				time.Sleep(time.Minute)
			}
		}
		o.Run.Trace = &reconnect.Trace{SlowHandler: func(reconnect.SlowHandler) { <-hook }}
		c := s.Open(&o)
		old := s.WantDial().Accept()
		old.Deliver(scene.Text("slow"))
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		time.Sleep(2 * time.Minute)
		require.NoError(t, c.Close())
		synctest.Wait()
		select {
		case <-c.Done():
			t.Error("Done is closed while SlowHandler runs")
		default:
		}
		close(hook)
		<-c.Done()
	})
}

// A message that was held until the old session had ended is passed to OnMessage by another goroutine than
// those after it. A slow call is reported there, too.
func TestSlowOnMessageForHeldMessageIsReported(t *testing.T) {
	for _, marks := range []bool{false, true} { // with marks the goroutines take turns
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var slow, overdue scene.Notes
			o := scene.Rotating(reconnect.OverlapHold)
			o.MarkRefetch = marks
			o.OnSeam = func(context.Context, *reconnect.Seam) {}
			o.OnMessage = func(_ context.Context, m reconnect.Message) {
				if m.Session == 2 {
					time.Sleep(time.Minute)
				}
			}
			o.Run.Trace = &reconnect.Trace{
				SlowHandler: func(e reconnect.SlowHandler) { slow.Add(fmt.Sprint(e.Session, " ", e.What)) },
				Overdue:     func(e reconnect.Overdue) { overdue.Add(e.What) },
			}
			c := s.Open(&o)
			s.WantDial().Accept()
			c.Rotate(1, reconnect.Advice{})
			next := s.WantDial().Accept()
			next.Deliver(scene.Text("held"))
			time.Sleep(2 * time.Minute)
			require.Equal(t, []string{"2 OnMessage"}, slow.All())
			require.Contains(t, overdue.All(), "OnMessage")
		})
	}
}
