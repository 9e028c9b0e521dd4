package rotate_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// A callback that ends the old supervisor's goroutine ends the Conn, also while two sessions
// overlap.
func TestACallbackThatDoesNotReturnEndsBothSessions(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnMessage = func(context.Context, reconnect.Message) { runtime.Goexit() }
		c, old, next := scene.Overlapping(s, &o)
		scene.Deliver(next, 10, 10)
		scene.Deliver(old, 1, 1)
		select {
		case <-c.Done():
		case <-time.After(time.Hour):
			t.Fatal("the Conn does not end")
		}
		require.ErrorContains(t, c.Err(), "OnMessage")
	})
}

// What the inbox cannot take of the held messages ends the next session, as it would have ended
// any other.
func TestHeldMessagesForWhichThereIsNoRoomEndTheSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Inbox = reconnect.Inbox{Messages: 2, Overflow: reconnect.InboxDisconnect}
		c, old, next := scene.Overlapping(s, &o)
		scene.Deliver(next, 10, 14)
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, uint64(1), scene.WantSeam(t, c).Session)
		scene.WantMessage(t, c, 2, "10")
		scene.WantMessage(t, c, 2, "11")
		seam := scene.WantSeam(t, c)
		require.Equal(t, uint64(2), seam.Session)
		require.ErrorIs(t, seam.Cause, reconnect.ErrInboxFull)
	})
}

// A reader that is away does not hold up the redial, and what was held waits for it.
func TestALossDuringARotationIsRedialedThoughNobodyReads(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Inbox = reconnect.Inbox{Messages: 2}
		c, old, next := scene.Overlapping(s, &o)
		scene.Deliver(old, 1, 3)
		scene.Deliver(next, 10, 13)
		time.Sleep(time.Minute)
		next.Fail(scene.ErrLost)
		require.Equal(t, time.Minute+time.Second, s.WantDial().At)
		scene.WantMessage(t, c, 1, "1")
		scene.WantMessage(t, c, 1, "2")
		require.Equal(t, uint64(1), scene.WantSeam(t, c).Session)
		for _, want := range []string{"10", "11", "12", "13"} {
			scene.WantMessage(t, c, 2, want)
		}
		require.Equal(t, uint64(2), scene.WantSeam(t, c).Session)
	})
}

// Nor does the inbox grow with each rotation until the reader comes back.
func TestHeldMessagesDoNotPileUpWhileNobodyReads(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Inbox = reconnect.Inbox{Messages: 2, Bytes: 640} // so that 10 may be held
		c := s.Open(&o)
		scene.Deliver(s.WantDial().Accept(), 1, 2)
		for range 5 {
			c.Rotate(c.Status().Session, reconnect.Advice{})
			next := s.WantDial().Accept()
			scene.Deliver(next, 10, 15)
			time.Sleep(time.Minute)
			next.Fail(scene.ErrLost)
			s.WantDial().Accept()
		}
		require.Equal(t, uint64(12), c.Stats().Unread)
	})
}

// The time of the old session is over while it is read again after a pause, and some of what came
// during the pause is still at hand.
func TestASessionThatIsReadBehindTimeHasNotOverlapped(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold) // whose Drain is 5 s
		o.Inbox.Messages = 1
		o.Layers = []*reconnect.Layer{{Receive: func(m reconnect.Message) bool {
			if string(m.Data) == "2" {
				time.Sleep(10 * time.Second)
			}
			return false
		}}}
		c := s.Open(&o)
		d, fake := s.WantDial(), conntest.NewFake(&scene.Alive)
		old := &rotatingPeer{server: fake, rotatingConn: fake.Conn().(rotatingConn)}
		d.Answer <- func() (conn.Conn, error) { return old, nil }
		synctest.Wait()
		for n := range 5 {
			old.give(n + 1)
		}
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		time.Sleep(4 * time.Second)
		scene.WantMessage(t, c, 1, "1") // makes room for 2
		time.Sleep(time.Minute)
		scene.WantMessage(t, c, 1, "2")
		seam := scene.WantSeam(t, c)
		require.True(t, seam.Planned)
		require.False(t, seam.Overlapped, "3, 4 and 5 are missing")
	})
}

// The next session fails before it is ready, just while the reader gets what it has delivered. Its
// seam comes after that.
func TestTheSeamOfAFailedRotationComesAfterWhatItHasDelivered(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			time.Sleep(time.Second)
			seen.Add(string(m.Data))
		}
		o.OnSeam = func(_ context.Context, m *reconnect.Seam) { seen.Add(fmt.Sprint("seam ", m.Session)) }
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session != 2 {
				return nil
			}
			for _, held := range []string{"a", "b"} {
				if err := op.Deliver(scene.Text(held)); err != nil {
					return err
				}
			}
			time.Sleep(10 * time.Second)
			return errors.Join(op.Deliver(scene.Text("c")), scene.ErrLost) // c is held while the reader gets a
		}
		_, old, _ := scene.Overlapping(s, &o)
		time.Sleep(9500 * time.Millisecond)
		old.Fail(scene.ErrLost)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"seam 1", "a", "b", "c", "seam 2"}, seen.All())
	})
}

// The context of OnMessage ends with the session of the message, so that a Write there, which
// waits for the next session, does not hold that up.
func TestTheContextOfAHeldMessageEndsWithItsSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var ended []time.Duration
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnMessage = func(ctx context.Context, m reconnect.Message) {
			if string(m.Data) == "10" {
				<-ctx.Done()
				ended = append(ended, s.Now())
			}
		}
		_, old, next := scene.Overlapping(s, &o)
		scene.Deliver(next, 10, 10)
		old.Fail(scene.ErrLost)
		time.Sleep(time.Second)
		next.Fail(scene.ErrLost)
		s.WantDial().Accept()
		require.Equal(t, []time.Duration{time.Second}, ended)
	})
}

// There is no verdict on the peer of the next session while that waits for the reader.
func TestASlowReaderDoesNotCostTheNextSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Pings: true, Transport: true}
		o := scene.Rotating(reconnect.OverlapHold)
		o.Inbox = reconnect.Inbox{Bytes: 4}
		c, old, next := scene.Overlapping(s, &o)
		scene.Deliver(old, 1, 9)
		scene.Deliver(next, 10, 15)
		next.Mute()
		time.Sleep(5 * time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, uint64(2), c.Status().Session)
	})
}

// An attempt that has given the reader nothing leaves no seam.
func TestALayerThatTakesWhatAFailedRotationDeliversLeavesNoSeam(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Layers = []*reconnect.Layer{{Receive: func(reconnect.Message) bool { return true }}}
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				op.Deliver(scene.Text("a"))
				return scene.ErrLost
			}
			return nil
		}
		c, _, _ := scene.Overlapping(s, &o)
		scene.WantNothing(t, c)
		require.Equal(t, uint64(0), c.Stats().Lost)
	})
}

// The seam after a session stands before what the next one delivers, also after a rotation.
func TestALateSeamComesBeforeWhatOnSessionDelivers(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Resumable = true
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 3 {
				op.Resumed()
				return op.Deliver(scene.Text("a"))
			}
			return nil
		}
		c, old, next := scene.Overlapping(s, &o)
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, uint64(1), scene.WantSeam(t, c).Session)
		next.Fail(scene.ErrLost)
		s.WantDial().Accept()
		seam := scene.WantSeam(t, c)
		require.Equal(t, uint64(2), seam.Session)
		require.True(t, seam.Resumed)
		scene.WantMessage(t, c, 3, "a")
	})
}

// A rotation that has not begun is none: the session is resumed as after any loss.
func TestASessionIsResumedThoughARotationWasDue(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Resumable = true
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				return op.Resumed()
			}
			return nil
		}
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{Wait: time.Minute})
		old.Fail(scene.ErrLost)
		s.WantDial().Accept()
		require.True(t, scene.WantSeam(t, c).Resumed)
	})
}

// The dial that was to replace a session becomes the redial, and so a kick is meant for it.
func TestAKickCutsTheWaitOfARotationWhoseOldSessionIsLost(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.Policy = scene.Every(30 * time.Second)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Refuse(backoff.RetryAfter(scene.ErrLost, 10*time.Second))
		old.Fail(scene.ErrLost)
		time.Sleep(11 * time.Second)
		at := s.Now()
		c.Kick()
		require.Equal(t, at, s.WantDial().At)
	})
}

// Each RotateStart has its RotateDone.
func TestCloseEndsARotationThatBreaksFirst(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var n scene.Notes
		o := scene.Rotating(reconnect.OverlapBreakFirst)
		o.Run.Trace = &reconnect.Trace{
			RotateStart: func(reconnect.RotateStart) { n.Add("start") },
			RotateDone:  func(d reconnect.RotateDone) { n.Add("done"); require.Error(t, d.Err) },
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial()
		scene.CloseAndWait(c)
		require.Equal(t, []string{"start", "done"}, n.All())
		require.False(t, c.Status().Rotating)
		require.Equal(t, uint64(1), c.Stats().RotationsFailed)
	})
}

// A slow hook does not make two ends of one rotation.
func TestARotationEndsOnceThoughTheHookIsSlow(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		done := 0
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.Trace = &reconnect.Trace{RotateDone: func(reconnect.RotateDone) { done++; time.Sleep(time.Minute) }}
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Refuse(backoff.Permanent(scene.ErrLost))
		old.Fail(scene.ErrLost)
		s.WantDial().Accept().Fail(scene.ErrLost)
		s.WantDial().Accept()
		require.Equal(t, 1, done)
		require.Equal(t, uint64(0), c.Stats().Rotations)
		require.Equal(t, uint64(1), c.Stats().RotationsFailed)
	})
}

// The peer of each session gets a close frame.
func TestShutdownClosesBothSessionsPolitely(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c, old, next := scene.Overlapping(s, &o)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c.Shutdown(ctx)
		for _, peer := range []*conntest.Fake{next, old} {
			code, _, closed := peer.ClosedWith()
			require.True(t, closed)
			require.Equal(t, 1000, code)
		}
	})
}

// What the next session has brought can be read after Shutdown, as all that came before.
func TestHeldMessagesCanBeReadAfterShutdown(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Inbox = reconnect.Inbox{Messages: 2}
		c, old, next := scene.Overlapping(s, &o)
		scene.Deliver(old, 1, 2)
		scene.Deliver(next, 10, 12)
		c.Shutdown(t.Context())
		scene.WantMessage(t, c, 1, "1")
		scene.WantMessage(t, c, 1, "2")
		require.Equal(t, uint64(1), scene.WantSeam(t, c).Session)
		for _, want := range []string{"10", "11", "12"} {
			scene.WantMessage(t, c, 2, want)
		}
	})
}

// A Conn that rotates every few minutes for days does not grow.
func TestRotationsAreForgotten(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{
		reconnect.OverlapHold, reconnect.OverlapMix, reconnect.OverlapBreakFirst,
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.Rotating(overlap)
			c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
				return conntest.NewFake(nil).Conn(), nil
			}), &o)
			require.NoError(t, err)
			heap := func() (m runtime.MemStats) { runtime.GC(); runtime.GC(); runtime.ReadMemStats(&m); return m }
			n := uint64(0)
			turn := func() {
				synctest.Wait()
				n++
				c.Rotate(n, reconnect.Advice{})
				time.Sleep(time.Minute)
				c.Read(t.Context(), nil)
			}
			turn()
			before := heap()
			for range 500 {
				turn()
			}
			after := heap()
			require.Equal(t, n, c.Stats().Rotations)
			require.Less(t, int64(after.HeapObjects-before.HeapObjects), int64(500))
			scene.CloseAndWait(c)
		})
	}
}

// The dial of a rotation that becomes the redial may be answered long after the rotation is over. SessionDone of the old session
// may take longer than that dial.
func TestASessionAfterALossDuringARotationKnowsTheLoss(t *testing.T) {
	for _, slow := range []time.Duration{0, 5 * time.Second} {
		afterALoss(t, slow)
	}
}

// afterALoss requires that a session that follows a loss during a rotation knows the loss. SessionDone of the old session takes as long as slow says.
func afterALoss(t *testing.T, slow time.Duration) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		var opened []reconnect.Opening
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			opened = append(opened, reconnect.Opening{Cause: op.Cause, Downtime: op.Downtime, Planned: op.Planned})
			return nil
		}
		var began []error // why the last session had ended, for each
		var replaced error
		o.Run.Trace = &reconnect.Trace{
			SessionStart: func(s *reconnect.Session) { began = append(began, s.Cause) },
			SessionDone: func(d reconnect.SessionDone) {
				if d.Session == 1 {
					time.Sleep(slow)
				}
			},
			RotateDone: func(d reconnect.RotateDone) { replaced = d.Err },
		}
		c := s.Open(&o)
		first := s.WantDial().Accept()
		synctest.Wait()
		c.Rotate(1, reconnect.Advice{})
		d := s.WantDial()
		time.Sleep(time.Second)
		first.Fail(scene.ErrLost)
		time.Sleep(3 * time.Second)
		next := d.Accept()
		synctest.Wait()
		require.Len(t, opened, 2)
		require.ErrorIs(t, opened[1].Cause, scene.ErrLost)
		require.Equal(t, 3*time.Second, opened[1].Downtime)
		require.False(t, opened[1].Planned)
		require.ErrorIs(t, began[1], scene.ErrLost)
		time.Sleep(slow)
		synctest.Wait()
		require.ErrorIs(t, replaced, scene.ErrLost)
		// The session after that has another loss before it.
		next.Fail(errSecond)
		s.WantDial().Accept()
		synctest.Wait()
		require.Len(t, opened, 3)
		require.ErrorIs(t, opened[2].Cause, errSecond)
		require.Less(t, opened[2].Downtime, 3*time.Second)
	})
}

var errSecond = errors.New("second loss")

// A hook that does not return ends the Conn.
func TestAHookOfARotationThatDoesNotReturnEndsTheConn(t *testing.T) {
	for _, hooks := range []*reconnect.Trace{
		{RotateStart: func(reconnect.RotateStart) { runtime.Goexit() }},
		{RotateDone: func(reconnect.RotateDone) { runtime.Goexit() }},
	} {
		for _, way := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapBreakFirst} {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.Rotating(way)
				o.Run.Trace = hooks
				c := s.Open(&o)
				s.WantDial().Accept()
				c.Rotate(1, reconnect.Advice{})
				if hooks.RotateDone != nil {
					s.WantDial().Accept()
				}
				select {
				case <-c.Done():
				case <-time.After(time.Hour):
					t.Fatal("the Conn does not end")
				}
				require.ErrorContains(t, c.Err(), "Trace.Rotate")
			})
		}
	}
}

// The dial of the next session is refused, and Keep is asked about what was for the old one.
func TestRotationEndsAlthoughKeepDoesNotReturn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.Rotating(reconnect.OverlapBreakFirst)
		o.WhenDown = reconnect.WhenDownKeep
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
		o.Outbox.Keep = func(context.Context, reconnect.Outgoing, error) bool { runtime.Goexit(); return false }
		var done []error
		o.Run.Trace = &reconnect.Trace{RotateDone: func(e reconnect.RotateDone) { done = append(done, e.Err) }}
		c := s.Open(&o)
		s.WantDial().Accept().Hold()
		for _, m := range []string{"held", "waits"} {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text(m)}))
		}
		synctest.Wait()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Refuse(scene.ErrLost)
		time.Sleep(time.Hour)
		require.ErrorContains(t, c.Err(), "ended for good: Keep: the function did not return")
		require.Len(t, done, 1)
		require.Error(t, done[0])
	})
}

// The Conn has failed, and goes on until OnMessage returns. Nobody waits for that.
func TestWhoWaitsToSendLearnsAtOnceThatAHookHasEndedTheConn(t *testing.T) {
	for name, wait := range map[string]func(*testing.T, *reconnect.Conn) error{
		"AwaitSession": func(t *testing.T, c *reconnect.Conn) error { _, err := c.AwaitSession(t.Context()); return err },
		"Write":        func(t *testing.T, c *reconnect.Conn) error { return c.Write(t.Context(), scene.Text("a")) },
		"SendWait": func(t *testing.T, c *reconnect.Conn) error {
			return c.SendWait(t.Context(), reconnect.Outgoing{Message: scene.Text("b")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.Rotating(reconnect.OverlapHold)
				o.WhenDown, o.Outbox.Messages = reconnect.WhenDownKeep, 1
				o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
				o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
				o.Run.Trace = &reconnect.Trace{RotateStart: func(reconnect.RotateStart) { time.Sleep(time.Second); runtime.Goexit() }}
				c := s.Open(&o)
				peer := s.WantDial().Accept()
				peer.Hold() // so that the outbox is full
				require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("held")}))
				synctest.Wait()
				require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("waits")}))
				peer.Deliver(scene.Text("m"))
				c.Rotate(1, reconnect.Advice{})
				time.Sleep(2 * time.Second)
				require.ErrorIs(t, wait(t, c), net.ErrClosed)
				require.Equal(t, 2*time.Second, s.Now())
				<-c.Done()
				require.ErrorContains(t, c.Err(), "Trace.RotateStart")
			})
		})
	}
}

// Messages without data take memory too.
func TestEmptyMessagesAreNotHeldWithoutLimit(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Inbox = reconnect.Inbox{Bytes: 640, Messages: 5}
		_, old, next := scene.Overlapping(s, &o)
		for range 10 {
			next.Deliver(scene.Text(""))
		}
		synctest.Wait()
		require.True(t, old.Closed())
	})
}
