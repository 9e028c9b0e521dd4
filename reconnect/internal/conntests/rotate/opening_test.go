package rotate_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 4.
func TestOnSessionHasSoleUseOfTheWire(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if err := op.Write(scene.Text("login")); err != nil {
				return err
			}
			_, err := op.Read()
			return err
		}
		c := s.Open(&o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("order")) }()
		peer := s.WantDial().Accept()
		require.Equal(t, []conn.Message{scene.Text("login")}, peer.Written())
		peer.Deliver(scene.Text("welcome"))
		require.NoError(t, <-wrote)
		require.Equal(t, []conn.Message{scene.Text("login"), scene.Text("order")}, peer.Written())
		scene.WantNothing(t, c) // the answer was OnSession's
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
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			c := s.Open(&reconnect.Options{OnSession: opening})
			s.WantDial().Accept().Deliver(scene.Text("1"), scene.Text("2"), scene.Text("3"))
			synctest.Wait()
			for i := 1; i <= 3; i++ {
				scene.WantMessage(t, c, 1, fmt.Sprint(i))
			}
		})
	})
	// So they do with OnMessage.
	t.Run("push", func(t *testing.T) {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var seen scene.Notes
			s.Open(&reconnect.Options{
				OnSession: opening,
				OnMessage: func(_ context.Context, m reconnect.Message) { seen.Add(string(m.Data)) },
			})
			s.WantDial().Accept().Deliver(scene.Text("1"), scene.Text("2"), scene.Text("3"))
			synctest.Wait()
			require.Equal(t, []string{"1", "2", "3"}, seen.All())
		})
	})
}

// Promise 10: a full inbox blocks Deliver too.
func TestDeliverWaitsForRoom(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		delivered := 0
		c := s.Open(&reconnect.Options{
			Inbox: reconnect.Inbox{Messages: 2},
			OnSession: func(_ context.Context, op *reconnect.Opening) error {
				for ; delivered < 5; delivered++ {
					if err := op.Deliver(scene.Text(fmt.Sprint(delivered))); err != nil {
						return err
					}
				}
				return nil
			},
		})
		s.WantDial().Accept()
		require.Equal(t, 2, delivered)
		for i := range 5 {
			scene.WantMessage(t, c, 1, fmt.Sprint(i))
			synctest.Wait()
		}
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestDeliverDoesNothingWithInboxDiscard(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(&reconnect.Options{
			Inbox:     reconnect.Inbox{Overflow: reconnect.InboxDiscard},
			OnSession: func(_ context.Context, op *reconnect.Opening) error { return op.Deliver(scene.Text("x")) },
		})
		s.WantDial().Accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Deliver copies: OnSession may keep what it delivers, and later messages do not overwrite it.
func TestDeliverCopiesWhatItIsGiven(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		marker := scene.Text("MARKER-MARKER") // a constant, delivered more than once
		var snapshot conn.Message             // kept by OnSession
		// OnSession keeps what it has read, and delivers it and a constant.
		o := scene.WithPolicy(scene.Every(0))
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
		c := s.Open(&o)
		d := s.WantDial()
		peer := d.Accept()
		peer.Deliver(scene.Text("snapshot"))
		scene.Deliver(peer, 1, 40)
		// All are read as they were sent.
		for _, want := range []string{"snapshot", "MARKER-MARKER", "MARKER-MARKER"} {
			scene.WantMessage(t, c, 1, want)
		}
		for i := range 40 {
			scene.WantMessage(t, c, 1, fmt.Sprint(i+1))
			synctest.Wait()
		}
		// What OnSession kept has not changed.
		require.Equal(t, "snapshot", string(snapshot.Data))
		require.Equal(t, "MARKER-MARKER", string(marker.Data))
	})
}

// The session before is still read, so that the message waits for its end.
func TestDeliverCopiesWhatIsHeld(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			m := scene.Text("a")
			err := op.Deliver(m)
			m.Data[0] = 'b'
			return err
		}
		c, old, _ := scene.Overlapping(s, &o)
		scene.WantMessage(t, c, 1, "a")
		old.Fail(scene.ErrLost)
		synctest.Wait()
		scene.WantSeam(t, c)
		scene.WantMessage(t, c, 2, "a")
	})
}

// Promise 4: an OnSession that fails is a failed attempt, and its connection is closed.
func TestAFailedOnSessionIsAFailedAttempt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Doubling{})
		o.OnSession = func(context.Context, *reconnect.Opening) error { return scene.ErrLost }
		c := s.Open(&o)
		for _, at := range []time.Duration{0, 1, 3, 7} {
			d := s.WantDial()
			require.Equal(t, at*time.Second, d.At)
			peer := d.Accept()
			require.True(t, peer.Closed())
			require.ErrorIs(t, c.Status().Err, scene.ErrLost)
		}
		require.Equal(t, uint64(4), c.Stats().Failures)
	})
}

// picky is a connection that can carry no message of ours.
type picky struct{ conn.Conn }

func (picky) Write(conn.Message) error { return conn.ErrBadMessage }

// The host has answered, and nothing is wrong with the connection.
func TestABadMessageOfOnSessionIsNoLostConnection(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		v := &scene.VerdictGate{}
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Gate, o.Run.Host = v, "h"
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(scene.Text("login")) }
		c := s.Open(&o)
		s.WantDial().Answer <- func() (conn.Conn, error) { return picky{conntest.NewFake(nil)}, nil }
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, conn.ErrBadMessage)
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOK}}, v.List)
	})
}

// Promises 4 and 10.
func TestOnSessionHasALimit(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var verdict backoff.Verdict
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) { verdict = w.Verdict }}
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			_, err := op.Read() // which the end of the limit unblocks
			return err
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		require.Equal(t, 31*time.Second, s.WantDial().At)
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
		require.EqualError(t, c.Status().Err, "OnSession: not ready within 30s")
		require.Equal(t, backoff.ClassOverload, verdict.Class)
	})
}

// Promise 4: an OnSession that is late has failed, even if it ignores its context and returns
// nil.
func TestAnOnSessionThatIsLateHasFailed(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OpenTimeout = time.Second
		var late scene.Notes
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; late.Add(what) }}
		o.OnSession = func(context.Context, *reconnect.Opening) error {
			time.Sleep(20 * time.Second)
			return nil
		}
		s.Open(&o)
		s.WantDial().Accept()
		require.Equal(t, 21*time.Second, s.WantDial().At)
		require.Equal(t, []string{"OnSession", "OnSession"}, late.All(), "after 5 s, and 10 s")
	})
}

// Promise 4: a session whose OnSession was late has never been ready.
func TestALateOnSessionIsNeverReady(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OpenTimeout = time.Second
		o.Run.Trace = scene.Recorder(&seen)
		o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error { <-ctx.Done(); return nil }
		c := s.Open(&o)
		s.WantDial().Accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		synctest.Wait()
		require.Equal(t, []string{"dial", "dialed ok", "session 1", "session 1 ended", "wait"}, seen.All())
	})
}

// Promise 4: OpenTimeout ends a Deliver that waits for room.
func TestTheLimitOnOpeningEndsDeliver(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Inbox.Messages = 1
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			return errors.Join(op.Deliver(scene.Text("1")), op.Deliver(scene.Text("2")))
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.Now())
		scene.WantMessage(t, c, 1, "1")
		scene.WantSeam(t, c)
	})
}

// Promise 4: the limit on opening also ends the wait for OnMessage, which the session before may be in.
func TestTheLimitOnOpeningEndsTheWaitForOnMessage(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var took time.Duration
		o := scene.Rotating(reconnect.OverlapMix)
		o.OpenTimeout = 10 * time.Second
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return nil
			}
			began := s.Now()
			err := op.Deliver(scene.Text("early"))
			took = s.Now() - began
			return err
		}
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial()
		scene.Deliver(old, 1, 1)
		next.Accept()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, o.OpenTimeout, took)
	})
}

// What the attempt has delivered was held, and is dropped with it.
func TestAnAttemptWhoseMessagesWereHeldLeavesNoSeam(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seams []uint64
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(_ context.Context, m *reconnect.Seam) { seams = append(seams, m.Session) }
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session != 2 {
				return nil
			}
			require.NoError(t, op.Deliver(scene.Text("early")))
			return context.DeadlineExceeded
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		s.WantDial().Accept()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []uint64{1}, seams)
	})
}

// The limit counts from the last Progress, and not a nanosecond longer. A session that replaces another has its
// deadline.
func TestProgressBeginsOpenTimeoutAgain(t *testing.T) {
	for name, test := range map[string]struct {
		planned bool
		took    time.Duration
	}{"first session": {false, 37 * time.Second}, "rotation": {true, 10 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.OpenTimeout = 10 * time.Second
				var took time.Duration
				var last *reconnect.Opening
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					if op.Planned != test.planned {
						return nil
					}
					began := time.Now()
					for range 3 {
						select {
						case <-time.After(9 * time.Second):
							op.Progress()
						case <-ctx.Done():
						}
					}
					<-ctx.Done()
					op.Progress() // too late
					took, last = time.Since(began), op
					require.ErrorContains(t, context.Cause(ctx), "not ready within 10s")
					return context.Cause(ctx)
				}
				c := s.Open(&o)
				s.WantDial().Accept()
				if test.planned {
					require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
					c.Rotate(1, reconnect.Advice{})
					s.WantDial().Accept()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, test.took, took)
				last.Progress() // has no effect
			})
		})
	}
}

func TestOpenTimeoutCanBeSwitchedOff(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(&reconnect.Options{
			OpenTimeout: -1,
			OnSession: func(_ context.Context, o *reconnect.Opening) error {
				time.Sleep(time.Hour)
				o.Progress()
				return nil
			},
		})
		peer := s.WantDial().Accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.False(t, peer.Closed())
	})
}

// Promise 9: OnSession can end the Conn, or ask for a wait, by the marks of package backoff.
func TestOnSessionDecidesByMarks(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return backoff.RetryAfter(scene.ErrLost, time.Minute)
			}
			return backoff.Permanent(scene.ErrLost)
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		d := s.WantDial()
		require.Equal(t, 61*time.Second, d.At)
		d.Accept()
		<-c.Done()
		require.ErrorIs(t, c.Err(), scene.ErrLost)
	})
}

// Promise 4: a session that Redial ended during OnSession is never ready.
func TestRedialDuringOnSessionIsAFailedAttempt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		var c *reconnect.Conn
		o.OnSession = func(context.Context, *reconnect.Opening) error {
			c.Redial(1, scene.ErrLost)
			return nil
		}
		var seen scene.Notes
		o.Run.Trace = scene.Recorder(&seen)
		c = s.Open(&o)
		s.WantDial().Accept()
		require.NotContains(t, seen.All(), "ready 1")
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
	})
}

// An OnSession that ends its goroutine has failed, and the session is not ready.
func TestAnOnSessionThatDoesNotReturnIsAFailure(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(context.Context, *reconnect.Opening) error { runtime.Goexit(); return nil }
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorContains(t, c.Status().Err, "OnSession: the function did not return")
		require.True(t, peer.Closed())
		s.WantDial()
	})
}

func TestAnOpeningIsOfNoUseAfterOnSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		kept := make(chan *reconnect.Opening, 1)
		s.Open(&reconnect.Options{OnSession: func(_ context.Context, op *reconnect.Opening) error {
			kept <- op
			return nil
		}})
		s.WantDial().Accept()
		op := <-kept
		_, err := op.Read()
		require.ErrorContains(t, err, "after OnSession")
		require.ErrorContains(t, op.Write(scene.Text("x")), "after OnSession")
		require.ErrorContains(t, op.Deliver(scene.Text("x")), "after OnSession")
	})
}

// Read and Write of an Opening return the cause for which its connection was cut.
func TestAnOpeningLearnsTheCauseOfACut(t *testing.T) {
	for name, use := range map[string]func(*reconnect.Opening) error{
		"read":  func(op *reconnect.Opening) error { _, err := op.Read(); return err },
		"write": func(op *reconnect.Opening) error { return op.Write(scene.Text("login")) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				got := make(chan error, 1)
				proceed := make(chan struct{})
				o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
					<-proceed
					got <- use(op)
					return scene.ErrLost
				}
				c := s.Open(&o)
				s.WantDial().Accept()
				c.Redial(1, scene.ErrLost)
				close(proceed)
				require.Equal(t, scene.ErrLost, <-got)
			})
		})
	}
}

func TestOpeningTellsWhatHappenedBefore(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var last reconnect.Opening
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			last.Session, last.Cause, last.Downtime = op.Session, op.Cause, op.Downtime
			return nil
		}
		s.Open(&o)
		s.WantDial().Accept().Fail(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept()
		require.Equal(t, uint64(2), last.Session)
		require.ErrorIs(t, last.Cause, scene.ErrLost)
		require.Equal(t, 2*time.Second, last.Downtime)
	})
}
