package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 4.
func TestOnSessionHasSoleUseOfTheWire(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if err := op.Write(text("login")); err != nil {
				return err
			}
			_, err := op.Read()
			return err
		}
		c := s.open(&o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("order")) }()
		peer := s.wantDial().accept()
		require.Equal(t, []conn.Message{text("login")}, peer.Written())
		peer.Deliver(text("welcome"))
		require.NoError(t, <-wrote)
		require.Equal(t, []conn.Message{text("login"), text("order")}, peer.Written())
		wantNothing(t, c) // the answer was OnSession's
	})
}

// Promise 4: messages that come during the login are delivered in order, with the number of
// their session.
func TestDeliverKeepsTheOrder(t *testing.T) {
	// OnSession reads two messages and delivers them.
	opening := func(_ context.Context, op *reconnect.Opening) error {
		for range 2 {
			m, err := op.Read()
			if err != nil {
				return err
			}
			if err := op.Deliver(m); err != nil {
				return err
			}
		}
		return nil
	}
	// With Read they come before the third.
	t.Run("pull", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *scene) {
			c := s.open(&reconnect.Options{OnSession: opening})
			s.wantDial().accept().Deliver(text("1"), text("2"), text("3"))
			synctest.Wait()
			for i := 1; i <= 3; i++ {
				wantMessage(t, c, 1, fmt.Sprint(i))
			}
		})
	})
	// So they do with OnMessage.
	t.Run("push", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *scene) {
			var seen notes
			s.open(&reconnect.Options{OnSession: opening, OnMessage: func(_ context.Context, m reconnect.Message) { seen.add(string(m.Data)) }})
			s.wantDial().accept().Deliver(text("1"), text("2"), text("3"))
			synctest.Wait()
			require.Equal(t, []string{"1", "2", "3"}, seen.all())
		})
	})
}

// Promise 10: a full inbox blocks Deliver too.
func TestDeliverWaitsForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		delivered := 0
		c := s.open(&reconnect.Options{
			Inbox: reconnect.Inbox{Messages: 2},
			OnSession: func(_ context.Context, op *reconnect.Opening) error {
				for ; delivered < 5; delivered++ {
					if err := op.Deliver(text(fmt.Sprint(delivered))); err != nil {
						return err
					}
				}
				return nil
			},
		})
		s.wantDial().accept()
		require.Equal(t, 2, delivered)
		for i := range 5 {
			wantMessage(t, c, 1, fmt.Sprint(i))
			synctest.Wait()
		}
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestDeliverDoesNothingWithInboxDiscard(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{
			Inbox:     reconnect.Inbox{Overflow: reconnect.InboxDiscard},
			OnSession: func(_ context.Context, op *reconnect.Opening) error { return op.Deliver(text("x")) },
		})
		s.wantDial().accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Deliver copies: OnSession may keep what it delivers, and later messages do not overwrite it.
func TestDeliverCopiesWhatItIsGiven(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		marker := text("MARKER-MARKER") // a constant, delivered more than once
		var snapshot conn.Message       // kept by OnSession
		// OnSession keeps what it has read, and delivers it and a constant.
		o := withPolicy(every(0))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) (err error) {
			if snapshot, err = op.Read(); err != nil {
				return err
			}
			for _, m := range []conn.Message{snapshot, marker, marker} {
				err = errors.Join(err, op.Deliver(m))
			}
			return err
		}
		// More messages come than the buffers of the Conn hold.
		c := s.open(&o)
		d := s.wantDial()
		peer := d.accept()
		peer.Deliver(text("snapshot"))
		deliver(peer, 1, 40)
		// All are read as they were sent.
		for _, want := range []string{"snapshot", "MARKER-MARKER", "MARKER-MARKER"} {
			wantMessage(t, c, 1, want)
		}
		for i := range 40 {
			wantMessage(t, c, 1, fmt.Sprint(i+1))
			synctest.Wait()
		}
		// What OnSession kept has not changed.
		require.Equal(t, "snapshot", string(snapshot.Data))
		require.Equal(t, "MARKER-MARKER", string(marker.Data))
	})
}

// The session before is still read, so that the message waits for its end.
func TestDeliverCopiesWhatIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			m := text("a")
			err := op.Deliver(m)
			m.Data[0] = 'b'
			return err
		}
		c, old, _ := overlapping(s, &o)
		wantMessage(t, c, 1, "a")
		old.Fail(errLost)
		synctest.Wait()
		wantSeam(t, c)
		wantMessage(t, c, 2, "a")
	})
}

// Promise 4: an OnSession that fails is a failed attempt, and its connection is closed.
func TestAFailedOnSessionIsAFailedAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(doubling{})
		o.OnSession = func(context.Context, *reconnect.Opening) error { return errLost }
		c := s.open(&o)
		for _, at := range []time.Duration{0, 1, 3, 7} {
			d := s.wantDial()
			require.Equal(t, at*time.Second, d.at)
			peer := d.accept()
			require.True(t, peer.Closed())
			require.ErrorIs(t, c.Status().Err, errLost)
		}
		require.Equal(t, uint64(4), c.Stats().Failures)
	})
}

// picky is a connection that can carry no message of ours.
type picky struct{ conn.Conn }

func (picky) Write(conn.Message) error { return conn.ErrBadMessage }

// The host has answered, and nothing is wrong with the connection.
func TestABadMessageOfOnSessionIsNoLostConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		v := &verdictGate{}
		o := withPolicy(every(time.Hour))
		o.Run.Gate, o.Run.Host = v, "h"
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(text("login")) }
		c := s.open(&o)
		s.wantDial().answer <- func() (conn.Conn, error) { return picky{conntest.NewFake(nil)}, nil }
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, conn.ErrBadMessage)
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOK}}, v.list)
	})
}

// Promises 4 and 10.
func TestOnSessionHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		var verdict backoff.Verdict
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { verdict = w.Verdict }}
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			_, err := op.Read() // which the end of the limit unblocks
			return err
		}
		c := s.open(&o)
		s.wantDial().accept()
		require.Equal(t, 31*time.Second, s.wantDial().at)
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
		require.EqualError(t, c.Status().Err, "OnSession: not ready within 30s")
		require.Equal(t, backoff.ClassOverload, verdict.Class)
	})
}

// Promise 4: an OnSession that is late has failed, even if it ignores its context and returns
// nil.
func TestAnOnSessionThatIsLateHasFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.OpenTimeout = time.Second
		var late notes
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; late.add(what) }}
		o.OnSession = func(context.Context, *reconnect.Opening) error {
			time.Sleep(20 * time.Second)
			return nil
		}
		s.open(&o)
		s.wantDial().accept()
		require.Equal(t, 21*time.Second, s.wantDial().at)
		require.Equal(t, []string{"OnSession", "OnSession"}, late.all(), "after 5 s, and 10 s")
	})
}

// Promise 4: a session whose OnSession was late has never been ready.
func TestALateOnSessionIsNeverReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := withPolicy(every(time.Hour))
		o.OpenTimeout = time.Second
		o.Run.Trace = recorder(&seen)
		o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error { <-ctx.Done(); return nil }
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		synctest.Wait()
		require.Equal(t, []string{"dial", "dialed ok", "session 1", "session 1 ended", "wait"}, seen.all())
	})
}

// Promise 4: OpenTimeout ends a Deliver that waits for room.
func TestTheLimitOnOpeningEndsDeliver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		o.Inbox.Messages = 1
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			return errors.Join(op.Deliver(text("1")), op.Deliver(text("2")))
		}
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
		wantMessage(t, c, 1, "1")
		wantSeam(t, c)
	})
}

// Promise 4: the limit on opening also ends the wait for OnMessage, which the session before may be in.
func TestTheLimitOnOpeningEndsTheWaitForOnMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var took time.Duration
		o := rotating(reconnect.OverlapMix)
		o.OpenTimeout = 10 * time.Second
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return nil
			}
			began := s.now()
			err := op.Deliver(text("early"))
			took = s.now() - began
			return err
		}
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial()
		deliver(old, 1, 1)
		next.accept()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, o.OpenTimeout, took)
	})
}

// What the attempt has delivered was held, and is dropped with it.
func TestAnAttemptWhoseMessagesWereHeldLeavesNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seams []uint64
		o := rotating(reconnect.OverlapHold)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(_ context.Context, m *reconnect.Seam) { seams = append(seams, m.Session) }
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session != 2 {
				return nil
			}
			require.NoError(t, op.Deliver(text("early")))
			return context.DeadlineExceeded
		}
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().accept()
		s.wantDial().accept()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []uint64{1}, seams)
	})
}

func TestOpenTimeoutCanBeSwitchedOff(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(&reconnect.Options{
			OpenTimeout: -1,
			OnSession:   func(context.Context, *reconnect.Opening) error { time.Sleep(time.Hour); return nil },
		})
		peer := s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.False(t, peer.Closed())
	})
}

// Promise 9: OnSession can end the Conn, or ask for a wait, by the marks of package backoff.
func TestOnSessionDecidesByMarks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return backoff.RetryAfter(errLost, time.Minute)
			}
			return backoff.Permanent(errLost)
		}
		c := s.open(&o)
		s.wantDial().accept()
		d := s.wantDial()
		require.Equal(t, 61*time.Second, d.at)
		d.accept()
		<-c.Done()
		require.ErrorIs(t, c.Err(), errLost)
	})
}

// Promise 4: a session that Redial ended during OnSession is never ready.
func TestRedialDuringOnSessionIsAFailedAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		var c *reconnect.Conn
		o.OnSession = func(context.Context, *reconnect.Opening) error {
			c.Redial(1, errLost)
			return nil
		}
		var seen notes
		o.Run.Trace = recorder(&seen)
		c = s.open(&o)
		s.wantDial().accept()
		require.NotContains(t, seen.all(), "ready 1")
		require.ErrorIs(t, c.Status().Err, errLost)
	})
}

// An OnSession that ends its goroutine has failed, and the session is not ready.
func TestAnOnSessionThatDoesNotReturnIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.OnSession = func(context.Context, *reconnect.Opening) error { runtime.Goexit(); return nil }
		c := s.open(&o)
		peer := s.wantDial().accept()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorContains(t, c.Status().Err, "OnSession: the function did not return")
		require.True(t, peer.Closed())
		s.wantDial()
	})
}

func TestAnOpeningIsOfNoUseAfterOnSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		kept := make(chan *reconnect.Opening, 1)
		s.open(&reconnect.Options{OnSession: func(_ context.Context, op *reconnect.Opening) error {
			kept <- op
			return nil
		}})
		s.wantDial().accept()
		op := <-kept
		_, err := op.Read()
		require.ErrorContains(t, err, "after OnSession")
		require.ErrorContains(t, op.Write(text("x")), "after OnSession")
		require.ErrorContains(t, op.Deliver(text("x")), "after OnSession")
	})
}

// Read and Write of an Opening return the cause for which its connection was cut.
func TestAnOpeningLearnsTheCauseOfACut(t *testing.T) {
	for name, use := range map[string]func(*reconnect.Opening) error{
		"read":  func(op *reconnect.Opening) error { _, err := op.Read(); return err },
		"write": func(op *reconnect.Opening) error { return op.Write(text("login")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Hour))
				got := make(chan error, 1)
				proceed := make(chan struct{})
				o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
					<-proceed
					got <- use(op)
					return errLost
				}
				c := s.open(&o)
				s.wantDial().accept()
				c.Redial(1, errLost)
				close(proceed)
				require.Equal(t, errLost, <-got)
			})
		})
	}
}

func TestOpeningTellsWhatHappenedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		var last reconnect.Opening
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			last.Session, last.Cause, last.Downtime = op.Session, op.Cause, op.Downtime
			return nil
		}
		s.open(&o)
		s.wantDial().accept().Fail(errLost)
		s.wantDial().refuse(errLost)
		s.wantDial().accept()
		require.Equal(t, uint64(2), last.Session)
		require.ErrorIs(t, last.Cause, errLost)
		require.Equal(t, 2*time.Second, last.Downtime)
	})
}
