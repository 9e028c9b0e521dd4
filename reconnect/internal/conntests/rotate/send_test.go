package rotate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The answer to a message of the old session goes back by the old one, as long as that lives.
func TestAnAnswerGoesByTheSessionOfTheQuestion(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		c, old, next := scene.Overlapping(s, o)
		require.NoError(t, c.WriteTo(t.Context(), 1, scene.Text("a")))
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("b"), Session: 1}))
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("c"), Session: 2}))
		scene.Queue(t, c, "d")
		require.NoError(t, c.WriteTo(t.Context(), 2, scene.Text("e")))
		require.NoError(t, c.Write(t.Context(), scene.Text("f")))
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, scene.Texts(old))
		require.Equal(t, []string{"c", "d", "e", "f"}, scene.Texts(next))
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.ErrorIs(t, c.WriteTo(t.Context(), 1, scene.Text("g")), reconnect.ErrSessionLost)
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: scene.Text("g"), Session: 1}), reconnect.ErrSessionLost)
	})
}

// The peer does not answer the close, which then takes a second.
func TestNoMessageGoesByASessionThatIsBeingClosed(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c, old, _ := scene.Overlapping(s, &o)
		old.Mute()
		time.Sleep(5*time.Second + time.Millisecond) // Drain
		err := c.WriteTo(t.Context(), 1, scene.Text("a"))
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Empty(t, old.Written())
	})
}

// What is being written ends by the old session. What waits behind it goes by the next one,
// in order; what is for the old one still goes by that.
func TestTheQueueMovesToTheNextSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, log := scene.Sending(reconnect.WhenDownFail)
		c := s.Open(o)
		old := s.WantDial().AcceptHeld()
		scene.Queue(t, c, "a")
		synctest.Wait() // a is being written
		scene.Queue(t, c, "b", "c")
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("d"), Session: 1}))
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		require.Empty(t, scene.Texts(next))
		old.Release()
		synctest.Wait()
		require.Equal(t, []string{"a", "d"}, scene.Texts(old))
		require.Equal(t, []string{"b", "c"}, scene.Texts(next))
		require.Len(t, log.All(), 4)
	})
}

// What goes by the next session does not wait for all that is for the old one.
func TestTheQueueMovesThoughTheOldSessionIsPaced(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.Pace, o.Rotate.Drain = budget.Window{N: 1, Per: time.Minute}, time.Hour
		c := s.Open(o)
		old := s.WantDial().AcceptHeld()
		scene.Queue(t, c, "a")
		synctest.Wait() // a is being written
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("b"), Session: 1}))
		scene.Queue(t, c, "c")
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		old.Release()
		synctest.Wait()
		require.Equal(t, []string{"a"}, scene.Texts(old))
		require.Equal(t, []string{"c"}, scene.Texts(next))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, scene.Texts(old))
	})
}

// A message that the old session could not write is written by the next, unless it was begun.
func TestWhatTheOldSessionDidNotWriteGoesByTheNext(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		c := s.Open(o)
		old := s.WantDial().AcceptHeld()
		a, b := make(chan error, 1), make(chan error, 1)
		go func() { a <- c.Write(context.Background(), scene.Text("a")) }()
		synctest.Wait()
		go func() { b <- c.Write(context.Background(), scene.Text("b")) }()
		synctest.Wait()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.ErrorContains(t, <-a, "unknown")
		require.NoError(t, <-b)
		require.Equal(t, []string{"b"}, scene.Texts(next))
	})
}

// breaking returns options under which a session is closed before the next is dialed.
func breaking(down reconnect.WhenDown) *reconnect.Options {
	o, _ := scene.Sending(down)
	o.Rotate.Overlap = reconnect.OverlapBreakFirst
	return o
}

// While there is no session on purpose, messages wait, though otherwise they would fail.
func TestMessagesWaitWhileASessionIsReplaced(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			c := s.Open(breaking(down))
			s.WantDial().Accept()
			c.Rotate(1, reconnect.Advice{})
			d := s.WantDial()
			done := make(chan error, 1)
			go func() { done <- c.Write(context.Background(), scene.Text("a")) }()
			synctest.Wait()
			scene.Queue(t, c, "b")
			next := d.Accept()
			require.NoError(t, <-done)
			require.ElementsMatch(t, []string{"a", "b"}, scene.Texts(next))
		})
	}
}

// A Write and an AwaitSession that come just when the next session becomes ready find it, or wait
// for it. Where they meet it is up to the scheduler, so there are many.
func TestNothingFailsWhenTheNextSessionBecomesReady(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		const callers = 50
		c := s.Open(breaking(reconnect.WhenDownFail))
		s.WantDial().Accept()
		for session := range uint64(10) {
			c.Rotate(session+1, reconnect.Advice{})
			d := s.WantDial()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					if err := c.Write(context.Background(), scene.Text("a")); err != nil {
						t.Error(err)
					}
					if n, err := c.AwaitSession(context.Background()); err != nil || n != session+2 {
						t.Error(n, err)
					}
				})
			}
			next := d.Accept()
			all.Wait()
			require.Len(t, scene.Texts(next), callers)
			synctest.Wait()
		}
	})
}

// They wait for as long as the dial takes, and no longer than Drain.
func TestMessagesDoNotWaitForADialThatFailsOrTakesLong(t *testing.T) {
	for name, late := range map[string]bool{"fails": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o, log := scene.Sending(reconnect.WhenDownFail)
				o.Rotate.Overlap = reconnect.OverlapBreakFirst
				c := s.Open(o)
				s.WantDial().Accept()
				c.Rotate(1, reconnect.Advice{})
				d := s.WantDial()
				done := make(chan error, 1)
				go func() { done <- c.Write(context.Background(), scene.Text("a")) }()
				synctest.Wait()
				scene.Queue(t, c, "b")
				if late {
					time.Sleep(5 * time.Second)
				} else {
					d.Refuse(scene.ErrLost)
				}
				require.ErrorIs(t, <-done, reconnect.ErrNotReady)
				synctest.Wait()
				require.Equal(t, reconnect.FateDropped, log.All()[0].Fate)
				require.ErrorIs(t, c.Send(scene.Out("c")), reconnect.ErrNotReady)
				if late {
					require.Less(t, s.Now(), 6*time.Second)
					d.Accept()
				} else {
					require.Equal(t, uint64(1), c.Stats().RotationsFailed)
					s.WantDial().Accept()
				}
				require.Equal(t, reconnect.StateReady, c.State())
			})
		})
	}
}

// A Conn that ends by itself meanwhile leaves no Write waiting.
func TestAWriteThatWaitsForTheNextSessionEndsWithTheConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(breaking(reconnect.WhenDownFail))
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.WantDial()
		done := make(chan error, 1)
		go func() { done <- c.Write(context.Background(), scene.Text("a")) }()
		synctest.Wait()
		d.Refuse(backoff.Permanent(scene.ErrLost))
		require.Error(t, <-done)
		<-c.Done()
	})
}

// A Write that waits for its turn by the old session goes by the next one.
func TestARotationDoesNotLoseAWriteThatThePaceHolds(t *testing.T) {
	for _, way := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapBreakFirst} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.Rotating(way)
			o.Pace = budget.Window{N: 1, Per: time.Minute}
			c := s.Open(&o)
			s.WantDial().Accept()
			require.NoError(t, c.Write(t.Context(), scene.Text("a")))
			failed := make(chan error, 1)
			go func() { failed <- c.Write(t.Context(), scene.Text("b")) }()
			synctest.Wait()
			c.Rotate(1, reconnect.Advice{})
			next := s.WantDial().Accept()
			require.NoError(t, <-failed)
			require.Equal(t, []string{"b"}, scene.Texts(next))
		})
	}
}

// A Write that stands in a batch behind a message whose fate is unknown was not begun, and goes by the next session.
func TestARotationDoesNotLoseAWriteOfABatch(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Transport: true}
		o, log := scene.Sending(reconnect.WhenDownFail)
		o.Rotate.Overlap, o.Pace = reconnect.OverlapBreakFirst, budget.Window{N: 2, Per: time.Minute}
		c := s.Open(o)
		old := s.WantDial().Accept()
		scene.Queue(t, c, "a", "b")
		synctest.Wait()
		scene.Queue(t, c, "c")
		done := make(chan error, 1)
		go func() { done <- c.Write(context.Background(), scene.Text("d")) }()
		synctest.Wait()
		old.Hold()
		time.Sleep(time.Minute)
		synctest.Wait() // c and d are being written, at once
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		require.NoError(t, <-done)
		require.Equal(t, []string{"d"}, scene.Texts(next))
		log.Want(t, "a: written 1", "b: written 1", "c: unknown 1")
	})
}

// A message of a session that opens may be answered by that session, which then is written when
// the session is ready.
func TestAWriteToTheSessionThatOpensWaitsForIt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		open := make(chan struct{})
		o := scene.Rotating(reconnect.OverlapMix)
		o.WhenDown = reconnect.WhenDownWait
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				op.Deliver(scene.Text("q"))
				<-open
			}
			return nil
		}
		c, old, next := scene.Overlapping(s, &o)
		scene.WantMessage(t, c, 2, "q")
		failed := make(chan error, 1)
		go func() { failed <- c.WriteTo(t.Context(), 2, scene.Text("a")) }()
		synctest.Wait()
		close(open)
		require.NoError(t, <-failed)
		require.Equal(t, []string{"a"}, scene.Texts(next))
		require.Empty(t, scene.Texts(old))
	})
}
