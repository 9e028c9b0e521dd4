package reconnect_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// leave sends messages of which the first is being written when the session is lost.
func leave(t *testing.T, c *reconnect.Conn, peer *conntest.Fake, messages ...reconnect.Out) {
	t.Helper()
	peer.Hold()
	for _, m := range messages {
		require.NoError(t, c.Send(m))
		synctest.Wait()
	}
	peer.Fail(errLost)
	synctest.Wait()
}

func out(data string) reconnect.Out { return reconnect.Out{Message: text(data)} }

func repeatable(data string) reconnect.Out {
	return reconnect.Out{Message: text(data), Repeatable: true}
}

// pinned is a message for one session only.
func pinned(session uint64, data string) reconnect.Out {
	return reconnect.Out{Message: text(data), Session: session}
}

// refuseFirst is an OnSession that fails in the first session.
func refuseFirst(_ context.Context, op *reconnect.Opening) error {
	if op.Session == 1 {
		return errLost
	}
	return nil
}

// errNotBegun is how a write fails of which not a byte has left.
var errNotBegun = fmt.Errorf("%w: %w", conn.ErrNotWritten, errLost)

// Promise 6: what was being written is of unknown fate and never sent again; the rest is kept.
func TestALostSessionLeavesItsQueueToTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"), out("c"))
		told.want(t, "a: unknown 1")
		now := time.Now()
		want := reconnect.Receipt{Out: out("a"), Fate: reconnect.FateUnknown, Session: 1, Tries: 1, Began: now, Ended: now, Err: told.last(t).Err}
		require.Equal(t, want, told.last(t))
		require.ErrorIs(t, told.last(t).Err, errLost)
		queue(t, c, "d")
		require.Equal(t, "b c d", written(s.wantDial().accept()))
		told.want(t, "a: unknown 1", "b: written 2", "c: written 2", "d: written 2")
		require.Equal(t, 1, told.last(t).Tries)
	})
}

// Promise 6: a queue is only for the session that was ready when it came.
func TestALostSessionsQueueIsDroppedUnlessMessagesAreKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, told := sending(down)
			c := s.open(o)
			leave(t, c, s.wantDial().accept(), repeatable("a"), out("b"), repeatable("c"))
			told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
			require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
			require.Regexp(t, "^its session was lost: (read|write): lost$", told.last(t).Err.Error())
			require.Empty(t, written(s.wantDial().accept()))
		})
	}
}

// Promise 6: an order is not a subscription.
func TestKeepHandsBackWhatItDoesNotWant(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var asked notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, cause error) bool {
			asked.add(string(m.Data))
			require.ErrorIs(t, cause, errLost)
			return m.Key == "subscription"
		}
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), keyed("order", "b"), keyed("subscription", "c"), keyed("order", "d"))
		require.Equal(t, []string{"b", "c", "d"}, asked.all())
		told.want(t, "a: unknown 1", "b: dropped 0", "d: dropped 0")
		require.Equal(t, keyed("order", "d"), told.last(t).Out)
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
		require.Equal(t, "c", written(s.wantDial().accept()))
	})
}

// A session that never was ready leaves nothing behind, nor does a failed dial.
func TestKeepIsAskedOnlyWhenAReadySessionIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.OnSession = refuseFirst
		o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { t.Error("asked"); return false }
		c := s.open(o)
		queue(t, c, "a")
		s.wantDial().refuse(errLost)
		s.wantDial().accept()
		require.Equal(t, "a", written(s.wantDial().accept()))
	})
}

// Its data is the caller's again.
func TestKeepIsNotAskedAboutWhatIsDroppedAlready(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var asked notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, _ error) bool {
			asked.add(string(m.Data))
			time.Sleep(time.Second)
			return true
		}
		c := s.open(o)
		late := out("c")
		late.Deadline = s.start.Add(time.Second / 2)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"), late, out("d"))
		time.Sleep(2 * time.Second)
		told.want(t, "a: unknown 1", "c: dropped 0")
		require.Equal(t, []string{"b", "d"}, asked.all())
		require.Equal(t, "b d", written(s.wantDial().accept()))
	})
}

// Promise 6: told once, though Keep takes its time.
func TestKeepMayDecideTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { time.Sleep(time.Second); return false }
		c := s.open(o)
		late := out("b")
		late.Deadline = s.start.Add(time.Second / 2)
		leave(t, c, s.wantDial().accept(), out("a"), late, out("c"))
		time.Sleep(2 * time.Second)
		told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, told.all()[1].Err, reconnect.ErrExpired)
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promise 6: only what is marked is sent again.
func TestARepeatableMessageIsSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), repeatable("a"), out("b"))
		told.want(t)
		require.Equal(t, "a b", written(s.wantDial().accept()), "at the head of the queue")
		told.want(t, "a: written 2", "b: written 2")
		require.Equal(t, 2, told.all()[0].Tries)
		require.Equal(t, 1, told.all()[1].Tries)
	})
}

// Promise 6: what may have arrived is not dropped, whatever ends it.
func TestTheFateOfARepeatableMessageThatIsGivenUpIsUnknown(t *testing.T) {
	for name, end := range map[string]func(o *reconnect.Options) (m reconnect.Out, cause error){
		"its deadline": func(*reconnect.Options) (reconnect.Out, error) {
			m := repeatable("a")
			m.Deadline = time.Now().Add(time.Second)
			return m, reconnect.ErrExpired
		},
		"Keep": func(o *reconnect.Options) (reconnect.Out, error) {
			o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { return false }
			return repeatable("a"), reconnect.ErrSessionLost
		},
		"its session": func(*reconnect.Options) (reconnect.Out, error) {
			return reconnect.Out{Message: text("a"), Repeatable: true, Session: 1}, reconnect.ErrSessionLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, told := sending(reconnect.WhenDownKeep)
				m, cause := end(o)
				c := s.open(o)
				leave(t, c, s.wantDial().accept(), m)
				s.wantDial() // after a second
				told.want(t, "a: unknown 1")
				require.ErrorIs(t, told.last(t).Err, cause)
				require.Equal(t, uint64(1), c.Stats().Unknown)
			})
		})
	}
}

// Promise 6: that a further try did not begin does not settle what became of the first.
func TestADoubtOutlivesATryThatWasNotBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		m := repeatable("a")
		m.Deadline = s.start.Add(3 * time.Second / 2)
		leave(t, c, s.wantDial().accept(), m)
		s.wantDial().acceptHeld().FailWrite(errNotBegun)
		s.wantDial() // after two seconds
		told.want(t, "a: unknown 2")
		require.Equal(t, 1, told.last(t).Tries)
	})
}

// Promise 6: what was not begun goes back to where it was, and was not tried.
func TestWhatWasNotBegunGoesBackToTheHead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.FailWrite(errNotBegun)
		queue(t, c, "a", "b")
		next := s.wantDial().accept()
		require.Equal(t, "a b", written(next))
		told.want(t, "a: written 2", "b: written 2")
		require.Equal(t, 1, told.all()[0].Tries)
	})
}

func TestWhatWasNotBegunIsDroppedUnlessMessagesAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownFail)
		c := s.open(o)
		s.wantDial().accept().FailWrite(errNotBegun)
		queue(t, c, "a")
		told.want(t, "a: dropped 1")
		require.Zero(t, told.last(t).Tries)
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promise 6: no part of a message goes by another session than the rest.
func TestAPinnedMessageGoesByItsSessionOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		require.NoError(t, c.Send(pinned(1, "a1")))
		require.Equal(t, "a1", written(peer))
		leave(t, c, peer, pinned(1, "a2"), pinned(1, "a3"), out("b"))
		told.want(t, "a1: written 1", "a2: unknown 1", "a3: dropped 0")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
		err := c.Send(pinned(1, "a4"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Equal(t, "b", written(s.wantDial().accept()))
		require.ErrorContains(t, c.Send(pinned(1, "a5")), "session 1")
		require.ErrorIs(t, c.Send(pinned(3, "c")), reconnect.ErrSessionLost, "nor by one that is to come")
		require.NoError(t, c.Send(pinned(2, "d")))
	})
}

// Not begun is no excuse, nor that the session is only about to be ready.
func TestAPinnedMessageDoesNotOutliveItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.OnSession = refuseFirst
		o.Run.Trace = &reconnect.Trace{SessionStart: func(n *reconnect.Session) {
			if n.Number == 1 {
				require.NoError(t, c.Send(pinned(1, "a")))
			}
		}}
		c = s.open(o)
		s.wantDial().accept()
		told.want(t, "a: dropped 0")
		s.wantDial().accept().FailWrite(errNotBegun)
		require.NoError(t, c.Send(pinned(2, "b")))
		told.want(t, "a: dropped 0", "b: dropped 2")
		require.Empty(t, written(s.wantDial().accept()))
	})
}

// Promise 6: the cause of a loss is told, but must not pass for the end of all.
func TestALostSessionIsNotTakenForAClosedConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownWait)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a", "b")
		synctest.Wait()
		peer.CloseNow()
		told.want(t, "a: unknown 1", "b: dropped 0")
		require.NotErrorIs(t, told.last(t).Err, net.ErrClosed, "though that was the cause")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
	})
}
