package reconnect_test

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
)

// overlapping opens a Conn whose first session is being replaced by the second.
func overlapping(s *scene, o *reconnect.Options) (c *reconnect.Conn, old, next *conntest.Fake) {
	c = s.open(o)
	old = s.wantDial().accept()
	c.Rotate(1, reconnect.Advice{})
	next = s.wantDial().accept()
	return c, old, next
}

// texts returns what a peer got.
func texts(peer *conntest.Fake) (list []string) {
	for _, m := range peer.Written() {
		list = append(list, string(m.Data))
	}
	return list
}

// The answer to a message of the old session goes back by the old one, as long as that lives.
func TestAnAnswerGoesByTheSessionOfTheQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownFail)
		c, old, next := overlapping(s, o)
		require.NoError(t, c.WriteTo(t.Context(), 1, text("a")))
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("b"), Session: 1}))
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("c"), Session: 2}))
		queue(t, c, "d")
		require.NoError(t, c.WriteTo(t.Context(), 2, text("e")))
		require.NoError(t, c.Write(t.Context(), text("f")))
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, texts(old))
		require.Equal(t, []string{"c", "d", "e", "f"}, texts(next))
		old.Fail(errLost)
		synctest.Wait()
		require.ErrorIs(t, c.WriteTo(t.Context(), 1, text("g")), reconnect.ErrSessionLost)
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: text("g"), Session: 1}), reconnect.ErrSessionLost)
	})
}

// The peer does not answer the close, which then takes a second.
func TestNoMessageGoesByASessionThatIsBeingClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c, old, _ := overlapping(s, &o)
		old.Mute()
		time.Sleep(5*time.Second + time.Millisecond) // Drain
		err := c.WriteTo(t.Context(), 1, text("a"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Empty(t, old.Written())
	})
}

// What is being written ends by the old session. What waits behind it goes by the next one,
// in order; what is for the old one still goes by that.
func TestTheQueueMovesToTheNextSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, log := sending(reconnect.WhenDownFail)
		c := s.open(o)
		old := s.wantDial().acceptHeld()
		queue(t, c, "a")
		synctest.Wait() // a is being written
		queue(t, c, "b", "c")
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("d"), Session: 1}))
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		require.Empty(t, texts(next))
		old.Release()
		synctest.Wait()
		require.Equal(t, []string{"a", "d"}, texts(old))
		require.Equal(t, []string{"b", "c"}, texts(next))
		require.Len(t, log.all(), 4)
	})
}

// What goes by the next session does not wait for all that is for the old one.
func TestTheQueueMovesThoughTheOldSessionIsPaced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownFail)
		o.Pace, o.Rotate.Drain = budget.Window{N: 1, Per: time.Minute}, time.Hour
		c := s.open(o)
		old := s.wantDial().acceptHeld()
		queue(t, c, "a")
		synctest.Wait() // a is being written
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("b"), Session: 1}))
		queue(t, c, "c")
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		old.Release()
		synctest.Wait()
		require.Equal(t, []string{"a"}, texts(old))
		require.Equal(t, []string{"c"}, texts(next))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, texts(old))
	})
}

// A message that the old session could not write is written by the next, unless it was begun.
func TestWhatTheOldSessionDidNotWriteGoesByTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownFail)
		c := s.open(o)
		old := s.wantDial().acceptHeld()
		a, b := make(chan error, 1), make(chan error, 1)
		go func() { a <- c.Write(context.Background(), text("a")) }()
		synctest.Wait()
		go func() { b <- c.Write(context.Background(), text("b")) }()
		synctest.Wait()
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		old.Fail(errLost)
		synctest.Wait()
		require.ErrorContains(t, <-a, "unknown")
		require.NoError(t, <-b)
		require.Equal(t, []string{"b"}, texts(next))
	})
}

// breaking returns options under which a session is closed before the next is dialed.
func breaking(down reconnect.WhenDown) *reconnect.Options {
	o, _ := sending(down)
	o.Rotate.Overlap = reconnect.OverlapBreakFirst
	return o
}

// While there is no session on purpose, messages wait, though otherwise they would fail.
func TestMessagesWaitWhileASessionIsReplaced(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inBubble(t, func(t *testing.T, s *scene) {
			c := s.open(breaking(down))
			s.wantDial().accept()
			c.Rotate(1, reconnect.Advice{})
			d := s.wantDial()
			done := make(chan error, 1)
			go func() { done <- c.Write(context.Background(), text("a")) }()
			synctest.Wait()
			queue(t, c, "b")
			next := d.accept()
			require.NoError(t, <-done)
			require.ElementsMatch(t, []string{"a", "b"}, texts(next))
		})
	}
}

// A Write and an AwaitSession that come just when the next session becomes ready find it, or wait
// for it. Where they meet it is up to the scheduler, so there are many.
func TestNothingFailsWhenTheNextSessionBecomesReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		const callers = 50
		c := s.open(breaking(reconnect.WhenDownFail))
		s.wantDial().accept()
		for session := range uint64(10) {
			c.Rotate(session+1, reconnect.Advice{})
			d := s.wantDial()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					if err := c.Write(context.Background(), text("a")); err != nil {
						t.Error(err)
					}
					if n, err := c.AwaitSession(context.Background()); err != nil || n != session+2 {
						t.Error(n, err)
					}
				})
			}
			next := d.accept()
			all.Wait()
			require.Len(t, texts(next), callers)
			synctest.Wait()
		}
	})
}

// They wait for as long as the dial takes, and no longer than Drain.
func TestMessagesDoNotWaitForADialThatFailsOrTakesLong(t *testing.T) {
	for name, late := range map[string]bool{"fails": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, log := sending(reconnect.WhenDownFail)
				o.Rotate.Overlap = reconnect.OverlapBreakFirst
				c := s.open(o)
				s.wantDial().accept()
				c.Rotate(1, reconnect.Advice{})
				d := s.wantDial()
				done := make(chan error, 1)
				go func() { done <- c.Write(context.Background(), text("a")) }()
				synctest.Wait()
				queue(t, c, "b")
				if late {
					time.Sleep(5 * time.Second)
				} else {
					d.refuse(errLost)
				}
				require.ErrorIs(t, <-done, reconnect.ErrNotReady)
				synctest.Wait()
				require.Equal(t, reconnect.FateDropped, log.all()[0].Fate)
				require.ErrorIs(t, c.Send(out("c")), reconnect.ErrNotReady)
				if late {
					require.Less(t, s.now(), 6*time.Second)
					d.accept()
				} else {
					require.Equal(t, uint64(1), c.Stats().RotationsFailed)
					s.wantDial().accept()
				}
				require.Equal(t, reconnect.StateReady, c.State())
			})
		})
	}
}

// A Conn that ends by itself meanwhile leaves no Write waiting.
func TestAWriteThatWaitsForTheNextSessionEndsWithTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(breaking(reconnect.WhenDownFail))
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.wantDial()
		done := make(chan error, 1)
		go func() { done <- c.Write(context.Background(), text("a")) }()
		synctest.Wait()
		d.refuse(backoff.Permanent(errLost))
		require.Error(t, <-done)
		<-c.Done()
	})
}

// A Write that waits for its turn by the old session goes by the next one.
func TestARotationDoesNotLoseAWriteThatThePaceHolds(t *testing.T) {
	for _, way := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapBreakFirst} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := rotating(way)
			o.Pace = budget.Window{N: 1, Per: time.Minute}
			c := s.open(&o)
			s.wantDial().accept()
			require.NoError(t, c.Write(t.Context(), text("a")))
			failed := make(chan error, 1)
			go func() { failed <- c.Write(t.Context(), text("b")) }()
			synctest.Wait()
			c.Rotate(1, reconnect.Advice{})
			next := s.wantDial().accept()
			require.NoError(t, <-failed)
			require.Equal(t, []string{"b"}, texts(next))
		})
	}
}

// A Write that stands in a batch behind a message whose fate is unknown was not begun, and goes by the next session.
func TestARotationDoesNotLoseAWriteOfABatch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = conntest.FakeOptions{Transport: true}
		o, log := sending(reconnect.WhenDownFail)
		o.Rotate.Overlap, o.Pace = reconnect.OverlapBreakFirst, budget.Window{N: 2, Per: time.Minute}
		c := s.open(o)
		old := s.wantDial().accept()
		queue(t, c, "a", "b")
		synctest.Wait()
		queue(t, c, "c")
		done := make(chan error, 1)
		go func() { done <- c.Write(context.Background(), text("d")) }()
		synctest.Wait()
		old.Hold()
		time.Sleep(time.Minute)
		synctest.Wait() // c and d are being written, at once
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		require.NoError(t, <-done)
		require.Equal(t, []string{"d"}, texts(next))
		log.want(t, "a: written 1", "b: written 1", "c: unknown 1")
	})
}

// A message of a session that opens may be answered by that session, which then is written when
// the session is ready.
func TestAWriteToTheSessionThatOpensWaitsForIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		open := make(chan struct{})
		o := rotating(reconnect.OverlapMix)
		o.WhenDown = reconnect.WhenDownWait
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				op.Deliver(text("q"))
				<-open
			}
			return nil
		}
		c, old, next := overlapping(s, &o)
		wantMessage(t, c, 2, "q")
		failed := make(chan error, 1)
		go func() { failed <- c.WriteTo(t.Context(), 2, text("a")) }()
		synctest.Wait()
		close(open)
		require.NoError(t, <-failed)
		require.Equal(t, []string{"a"}, texts(next))
		require.Empty(t, texts(old))
	})
}
