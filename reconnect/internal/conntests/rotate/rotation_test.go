package rotate_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestHeldMessagesOfTheNextSessionComeAfterAllOfTheOld(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		scene.Deliver(old, 1, 2)
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		require.Equal(t, uint64(2), c.Status().Session)
		require.True(t, c.Status().Rotating)
		scene.Deliver(next, 10, 11)
		scene.Deliver(old, 3, 4)
		for _, want := range []string{"1", "2", "3", "4"} {
			scene.WantMessage(t, c, 1, want)
		}
		scene.WantNothing(t, c)
		time.Sleep(6 * time.Second) // Drain, and the answer to the close that never comes
		synctest.Wait()
		require.Equal(t, &reconnect.Seam{
			Session: 1, Cause: reconnect.ErrRotated, Lost: 1, Planned: true, Overlapped: true, Reason: backoff.ReasonRotated,
		}, scene.WantSeam(t, c))
		scene.WantMessage(t, c, 2, "10")
		scene.WantMessage(t, c, 2, "11")
		scene.Deliver(next, 12, 12)
		scene.WantMessage(t, c, 2, "12")
		code, _, closed := old.ClosedWith()
		require.True(t, closed)
		require.Equal(t, 1000, code)
		require.False(t, c.Status().Rotating)
		require.Equal(t, uint64(1), c.Stats().Rotations)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// The server that moves the stream to the next connection ends the old one itself.
func TestHeldMessagesComeAtOnceWhenThePeerEndsTheOldSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		scene.Deliver(next, 10, 10)
		scene.WantNothing(t, c)
		old.Fail(&conn.CloseError{Code: 1001})
		synctest.Wait()
		seam := scene.WantSeam(t, c)
		require.True(t, seam.Planned && seam.Overlapped)
		require.Equal(t, backoff.ReasonCloseNormal, seam.Reason)
		scene.WantMessage(t, c, 2, "10")
		require.Less(t, s.Now(), time.Millisecond)
	})
}

// Whatever the code of its close frame says, the peer has sent all that it wanted to before.
func TestSessionsOverlapThoughThePeerClosesTheOldOneWithAnyCode(t *testing.T) {
	for _, code := range []int{1000, 1008, 1011, 1012, 1013, 4001} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.Rotating(reconnect.OverlapHold)
			c := s.Open(&o)
			old := s.WantDial().Accept()
			c.Rotate(1, reconnect.Advice{})
			s.WantDial().Accept()
			old.Fail(&conn.CloseError{Code: code})
			synctest.Wait()
			require.True(t, scene.WantSeam(t, c).Overlapped, code)
		})
	}
}

// But if nobody has read the old session for some time, the peer may have ended it before it gave
// the next one anything.
func TestSessionsDoNotOverlapIfTheOldOneMayHaveEndedBefore(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seams []*reconnect.Seam
		o := scene.Rotating(reconnect.OverlapHold)
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(3 * time.Second) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { seams = append(seams, s) }
		c := s.Open(&o)
		old := s.WantDial().Accept()
		scene.Deliver(old, 1, 1)
		old.Fail(&conn.CloseError{Code: 1012})
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Len(t, seams, 1)
		require.True(t, seams[0].Planned)
		require.False(t, seams[0].Overlapped)
	})
}

func TestMixedMessagesComeAsTheyCome(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.Rotating(reconnect.OverlapMix)
		o.OnMessage = func(_ context.Context, m reconnect.Message) { seen.Add(string(m.Data)) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { seen.Add("seam") }
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		scene.Deliver(next, 10, 10)
		scene.Deliver(old, 1, 1)
		scene.Deliver(next, 11, 11)
		old.Fail(scene.ErrLost)
		synctest.Wait()
		scene.Deliver(next, 12, 12)
		require.Equal(t, []string{"10", "1", "11", "seam", "12"}, seen.All())
	})
}

func TestBreakFirstClosesAndDialsWithoutAWait(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.OneConnection = true // which makes every rotation break first
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.WantDial()
		require.Equal(t, time.Duration(0), d.At)
		require.True(t, old.Closed())
		require.NotEqual(t, reconnect.StateReady, c.State())
		next := d.Accept()
		seam := scene.WantSeam(t, c)
		require.True(t, seam.Planned)
		require.False(t, seam.Overlapped)
		scene.Deliver(next, 1, 1)
		scene.WantMessage(t, c, 2, "1")
		require.Equal(t, uint64(1), c.Stats().Rotations)
	})
}

// If the dial fails the old session stays, and the dial is repeated as after a loss.
func TestTheOldSessionStaysWhileTheNextCannotBeMade(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Refuse(scene.ErrLost)
		scene.Deliver(old, 1, 1)
		scene.WantMessage(t, c, 1, "1")
		require.Equal(t, reconnect.StateReady, c.State())
		require.NoError(t, c.Write(context.Background(), scene.Text("a")))
		d := s.WantDial()
		require.Equal(t, time.Second, d.At)
		next := d.Accept()
		require.NoError(t, c.Write(context.Background(), scene.Text("b")))
		require.Equal(t, []conn.Message{scene.Text("a")}, old.Written())
		require.Equal(t, []conn.Message{scene.Text("b")}, next.Written())
	})
}

// Promise 1: while the old session lives there is no dial beside that of the next, also after a next session that was
// lost while it opened.
func TestARotationHasOneDialThoughANextSessionWasLost(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.Policy = scene.Hanging{}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 2 {
				return scene.ErrLost
			}
			return nil
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		third := s.WantDial()
		third.Connected()
		fourth := s.WantDial() // after backoff.DefaultHandshake, in which the third was not answered
		require.Error(t, third.Ctx.Err(), "the third dial goes on beside the fourth")
		fourth.Accept()
		require.Equal(t, uint64(3), c.Status().Session)
	})
}

// A loss during a rotation is an ordinary one, and the dial under way is the redial.
func TestTheDialOfARotationBecomesTheRedial(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.WantDial()
		time.Sleep(100 * time.Millisecond)
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateConnecting, c.State())
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
		seam := scene.WantSeam(t, c)
		require.False(t, seam.Planned || seam.Overlapped)
		next := d.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
		scene.Deliver(next, 1, 1)
		scene.WantMessage(t, c, 2, "1")
		next.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, uint64(2), scene.WantSeam(t, c).Session)
		s.WantDial().Accept()
		require.Equal(t, uint64(3), c.Status().Session)
	})
}

// The server may refuse the next session only because the old one is there. When that is lost,
// the wait before the next try is that after a loss.
func TestTheWaitAfterALossIsNotThatOfARefusedRotation(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, old, done := s.RefusedRotation(backoff.Slow(errors.New("one is enough")))
		time.Sleep(4 * time.Second) // a slow wait takes 5 s at least
		s.WantNoDial()
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, uint64(1), scene.WantSeam(t, c).Session)
		require.Len(t, *done, 1)
		require.ErrorIs(t, (*done)[0], scene.ErrLost)
		require.False(t, c.Status().Rotating)
		d := s.WantDial()
		require.Equal(t, 5*time.Second, d.At)
		scene.Deliver(d.Accept(), 1, 1)
		scene.WantMessage(t, c, 2, "1")
	})
}

func TestTheWaitThatTheServerAsksForOutlivesTheOldSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, old, _ := s.RefusedRotation(backoff.RetryAfter(errors.New("too many"), time.Minute))
		time.Sleep(10 * time.Second)
		old.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		d := s.WantDial()
		require.GreaterOrEqual(t, d.At, time.Minute)
		d.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestARotationThatTheServerForbidsEndsAndTheSessionStays(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, old, done := s.RefusedRotation(backoff.Permanent(scene.ErrLost))
		require.Len(t, *done, 1)
		require.ErrorIs(t, (*done)[0], scene.ErrLost)
		scene.Deliver(old, 1, 1)
		scene.WantMessage(t, c, 1, "1")
		require.Equal(t, uint64(1), c.Stats().RotationsFailed)
		require.False(t, c.Status().Rotating)
		old.Fail(errors.New("later"))
		s.WantDial().Accept() // the redial is the old supervisor's again
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// The rotation has ended when RotateDone is called, although the hook has not returned.
func TestRotateInRotateDoneOfFailedRotation(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.SkipBreakFirst()
		failed := func() {}
		o := scene.Rotating(reconnect.OverlapHold)
		o.Run.Trace = &reconnect.Trace{RotateDone: func(reconnect.RotateDone) { failed() }}
		c, _ := s.Ready(&o)
		time.Sleep(time.Minute) // in which the rotations before end
		synctest.Wait()
		failed = func() {
			failed = func() {}
			c.Rotate(s.Session, reconnect.Advice{})
		}
		c.Rotate(s.Session, reconnect.Advice{})
		s.WantDial().Refuse(backoff.Permanent(scene.ErrLost))
		s.WantDial().Accept()
		require.Equal(t, s.Session+1, c.Status().Session)
	})
}

// Close, at each step of a rotation, leaves nothing: goleak and the bubble see to that.
func TestCloseEndsARotationAtEachStep(t *testing.T) {
	steps := []string{"due", "dialing", "opening", "overlap", "over"}
	for stop := range steps {
		t.Run(steps[stop], func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.Rotating(reconnect.OverlapHold)
				opened := make(chan struct{})
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					if op.Session == 1 {
						return nil
					}
					select {
					case <-opened:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				c := s.Open(&o)
				s.WantDial().Accept()
				c.Rotate(1, reconnect.Advice{Wait: time.Second})
				if stop >= 1 {
					d := s.WantDial()
					if stop >= 2 {
						d.Accept()
					}
				}
				if stop >= 3 {
					close(opened)
					synctest.Wait()
					require.Equal(t, uint64(2), c.Status().Session)
				}
				if stop >= 4 {
					time.Sleep(time.Minute)
				}
				scene.CloseAndWait(c)
				require.Equal(t, reconnect.StateClosed, c.State())
			})
		})
	}
}

func TestRotateOfAnotherSessionDoesNothing(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		c.Rotate(0, reconnect.Advice{})
		s.WantDial().Accept()
		c.Rotate(2, reconnect.Advice{})
		s.WantNoDial()
		c.Rotate(1, reconnect.Advice{})
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		c.Rotate(2, reconnect.Advice{}) // the old one is still there, and three are too many
		s.WantNoDial()
	})
}

func TestSessionsAreReplacedAtTheirAge(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Rotate.After = time.Hour
		s.Ready(&o)
		last := time.Duration(0)
		for range 5 {
			d := s.WantDial()
			age := d.At - last
			require.GreaterOrEqual(t, age, 54*time.Minute)
			require.Less(t, age, time.Hour)
			last = d.At
			d.Accept()
		}
	})
}

// A rotation that After has not requested is in progress at the age of the session, and fails then.
func TestSessionIsReplacedAtItsAgeThoughRotationFailed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.SkipBreakFirst()
		o := scene.Rotating(reconnect.OverlapHold)
		o.Rotate.After = time.Hour
		o.Run.Policy = scene.Hanging{}
		c, _ := s.Ready(&o)
		time.Sleep(50 * time.Minute)
		c.Rotate(s.Session, reconnect.Advice{})
		d := s.WantDial()
		d.Connected()
		for s.Now() < 61*time.Minute {
			d = s.WantDial() // instead of one that hangs
			d.Connected()
		}
		d.Refuse(backoff.Permanent(scene.ErrLost))
		failed := s.Now()
		require.False(t, c.Status().Rotating)
		require.LessOrEqual(t, s.WantDial().At, failed+time.Second)
	})
}

func TestAfterRequestsNoRotationThatTheServerHasForbidden(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.SkipBreakFirst()
		o := scene.Rotating(reconnect.OverlapHold)
		o.Rotate.After = time.Hour
		s.Fake = scene.Alive
		c, _ := s.Ready(&o)
		s.WantDial().Refuse(backoff.Permanent(scene.ErrLost))
		time.Sleep(24 * time.Hour)
		s.WantNoDial()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.Session, c.Status().Session)
	})
}

// Nobody speaks at the good moment for ever.
func TestASessionIsReplacedAtTheLastMomentThoughNoneWasGood(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		o.Rotate.After = 100 * time.Minute
		asked := 0
		o.Rotate.Allowed = func(time.Time) bool { asked++; return false }
		s.Ready(&o)
		at := s.WantDial().At
		require.LessOrEqual(t, at, 99*time.Minute+time.Second)
		require.GreaterOrEqual(t, at, 99*time.Minute)
		require.Greater(t, asked, 1)
	})
}

// A Conn that rotates every few minutes for days does not grow.
func TestSessionsThatWereReplacedAreForgotten(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var sessions []weak.Pointer[conntest.Fake]
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			f := conntest.NewFake(nil)
			sessions = append(sessions, weak.Make(f))
			return f.Conn(), nil
		}), nil)
		require.NoError(t, err)
		for n := range uint64(5) {
			synctest.Wait()
			c.Rotate(n+1, reconnect.Advice{})
			time.Sleep(time.Minute)
		}
		require.Equal(t, uint64(5), c.Stats().Rotations)
		runtime.GC()
		for _, old := range sessions[:4] { // the inbox may still have the seam of the fifth
			require.Nil(t, old.Value())
		}
		scene.CloseAndWait(c)
	})
}

// Nor does one that rotated once keep the session that came of it.
func TestTheSessionAfterARotationIsForgottenWhenItIsLost(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.WantDial().Accept()
		time.Sleep(time.Minute)
		next.Fail(scene.ErrLost)
		lost := weak.Make(next)
		next = nil
		s.WantDial().Accept()
		runtime.GC()
		require.Nil(t, lost.Value())
		require.Equal(t, uint64(3), c.Status().Session)
	})
}

// The inbox wakes its reader once for all messages that a connection has at hand, when that has
// no more. Messages that were held must not wait for that, because the next session may be
// quiet. There is room for two, so that the reader falls asleep before the fifth.
func TestHeldMessagesComeThoughTheNextSessionIsQuiet(t *testing.T) {
	const held = 5
	greet := func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		for range held {
			c.Write(ctx, websocket.MessageText, []byte("hello"))
		}
		conntest.Discard(ctx, c, r)
	}
	scene.WithWSServer(t, greet, func(t *testing.T, server *scene.WSServer) {
		c := server.Ready(t, &reconnect.Options{
			Inbox:  reconnect.Inbox{Messages: 2},
			Rotate: reconnect.Rotation{Drain: time.Millisecond},
		})
		for range held {
			scene.WantMessage(t, c, 1, "hello")
		}
		for n := range uint64(20) {
			c.Rotate(n+1, reconnect.Advice{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := c.Read(ctx, nil)
			require.ErrorAs(t, err, new(*reconnect.Seam))
			for range held {
				m, err := c.Read(ctx, nil)
				require.NoError(t, err, "rotation %d", n+1)
				require.Equal(t, n+2, m.Session)
			}
			cancel()
			time.Sleep(time.Second)
		}
	})
}
