package reconnect_test

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
)

// rotating returns options without waits, with this way to rotate.
func rotating(way reconnect.Overlap) reconnect.Options {
	o := withPolicy(every(time.Second))
	o.Rotate.Overlap = way
	return o
}

func TestHeldMessagesOfTheNextSessionComeAfterAllOfTheOld(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		deliver(old, 1, 2)
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		require.Equal(t, uint64(2), c.Status().Session)
		require.True(t, c.Status().Rotating)
		deliver(next, 10, 11)
		deliver(old, 3, 4)
		for _, want := range []string{"1", "2", "3", "4"} {
			wantMessage(t, c, 1, want)
		}
		wantNothing(t, c)
		time.Sleep(6 * time.Second) // Drain, and the answer to the close that never comes
		synctest.Wait()
		require.Equal(t, &reconnect.Seam{
			Session: 1, Cause: reconnect.ErrRotated, Lost: 1, Planned: true, Overlapped: true, Reason: backoff.ReasonRotated,
		}, wantSeam(t, c))
		wantMessage(t, c, 2, "10")
		wantMessage(t, c, 2, "11")
		deliver(next, 12, 12)
		wantMessage(t, c, 2, "12")
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
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		deliver(next, 10, 10)
		wantNothing(t, c)
		old.Fail(&conn.CloseError{Code: 1001})
		synctest.Wait()
		seam := wantSeam(t, c)
		require.True(t, seam.Planned && seam.Overlapped)
		require.Equal(t, backoff.ReasonCloseNormal, seam.Reason)
		wantMessage(t, c, 2, "10")
		require.Less(t, s.now(), time.Millisecond)
	})
}

// Whatever the code of its close frame says, the peer has sent all that it wanted to before.
func TestSessionsOverlapThoughThePeerClosesTheOldOneWithAnyCode(t *testing.T) {
	for _, code := range []int{1000, 1008, 1011, 1012, 1013, 4001} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := rotating(reconnect.OverlapHold)
			c := s.open(&o)
			old := s.wantDial().accept()
			c.Rotate(1, reconnect.Advice{})
			s.wantDial().accept()
			old.Fail(&conn.CloseError{Code: code})
			synctest.Wait()
			require.True(t, wantSeam(t, c).Overlapped, code)
		})
	}
}

// But if nobody has read the old session for some time, the peer may have ended it before it gave
// the next one anything.
func TestSessionsDoNotOverlapIfTheOldOneMayHaveEndedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seams []*reconnect.Seam
		o := rotating(reconnect.OverlapHold)
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(3 * time.Second) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { seams = append(seams, s) }
		c := s.open(&o)
		old := s.wantDial().accept()
		deliver(old, 1, 1)
		old.Fail(&conn.CloseError{Code: 1012})
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().accept()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Len(t, seams, 1)
		require.True(t, seams[0].Planned)
		require.False(t, seams[0].Overlapped)
	})
}

func TestMixedMessagesComeAsTheyCome(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := rotating(reconnect.OverlapMix)
		o.OnMessage = func(_ context.Context, m reconnect.Message) { seen.add(string(m.Data)) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { seen.add("seam") }
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		deliver(next, 10, 10)
		deliver(old, 1, 1)
		deliver(next, 11, 11)
		old.Fail(errLost)
		synctest.Wait()
		deliver(next, 12, 12)
		require.Equal(t, []string{"10", "1", "11", "seam", "12"}, seen.all())
	})
}

func TestBreakFirstClosesAndDialsWithoutAWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		o.Run.OneConnection = true // which makes every rotation break first
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.wantDial()
		require.Equal(t, time.Duration(0), d.at)
		require.True(t, old.Closed())
		require.NotEqual(t, reconnect.StateReady, c.State())
		next := d.accept()
		seam := wantSeam(t, c)
		require.True(t, seam.Planned)
		require.False(t, seam.Overlapped)
		deliver(next, 1, 1)
		wantMessage(t, c, 2, "1")
		require.Equal(t, uint64(1), c.Stats().Rotations)
	})
}

// If the dial fails the old session stays, and the dial is repeated as after a loss.
func TestTheOldSessionStaysWhileTheNextCannotBeMade(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().refuse(errLost)
		deliver(old, 1, 1)
		wantMessage(t, c, 1, "1")
		require.Equal(t, reconnect.StateReady, c.State())
		require.NoError(t, c.Write(context.Background(), text("a")))
		d := s.wantDial()
		require.Equal(t, time.Second, d.at)
		next := d.accept()
		require.NoError(t, c.Write(context.Background(), text("b")))
		require.Equal(t, []conn.Message{text("a")}, old.Written())
		require.Equal(t, []conn.Message{text("b")}, next.Written())
	})
}

// Promise 1: while the old session lives there is no dial beside that of the next, also after a next session that was
// lost while it opened.
func TestARotationHasOneDialThoughANextSessionWasLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		o.Run.Policy = hanging{}
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 2 {
				return errLost
			}
			return nil
		}
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().accept()
		third := s.wantDial()
		third.connected()
		fourth := s.wantDial() // after backoff.DefaultHandshake, in which the third was not answered
		require.Error(t, third.ctx.Err(), "the third dial goes on beside the fourth")
		fourth.accept()
		require.Equal(t, uint64(3), c.Status().Session)
	})
}

// A loss during a rotation is an ordinary one, and the dial under way is the redial.
func TestTheDialOfARotationBecomesTheRedial(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		d := s.wantDial()
		time.Sleep(100 * time.Millisecond)
		old.Fail(errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateConnecting, c.State())
		require.ErrorIs(t, c.Status().Err, errLost)
		seam := wantSeam(t, c)
		require.False(t, seam.Planned || seam.Overlapped)
		next := d.accept()
		require.Equal(t, reconnect.StateReady, c.State())
		deliver(next, 1, 1)
		wantMessage(t, c, 2, "1")
		next.Fail(errLost)
		synctest.Wait()
		require.Equal(t, uint64(2), wantSeam(t, c).Session)
		s.wantDial().accept()
		require.Equal(t, uint64(3), c.Status().Session)
	})
}

// refusedRotation returns a Conn whose session was to be replaced, which the server has refused
// because of why, and that session. done gets the errors of Trace.RotateDone.
func (s *scene) refusedRotation(why error) (c *reconnect.Conn, old *conntest.Fake, done *[]error) {
	done = new([]error)
	o := rotating(reconnect.OverlapHold)
	o.Run.Trace = &reconnect.Trace{RotateDone: func(r reconnect.RotateDone) { *done = append(*done, r.Err) }}
	c = s.open(&o)
	old = s.wantDial().accept()
	c.Rotate(1, reconnect.Advice{})
	s.wantDial().refuse(why)
	return c, old, done
}

// The server may refuse the next session only because the old one is there. When that is lost,
// the wait before the next try is that after a loss.
func TestTheWaitAfterALossIsNotThatOfARefusedRotation(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, old, done := s.refusedRotation(backoff.Slow(errors.New("one is enough")))
		time.Sleep(4 * time.Second) // a slow wait takes 5 s at least
		s.wantNoDial()
		old.Fail(errLost)
		synctest.Wait()
		require.Equal(t, uint64(1), wantSeam(t, c).Session)
		require.Len(t, *done, 1)
		require.ErrorIs(t, (*done)[0], errLost)
		require.False(t, c.Status().Rotating)
		d := s.wantDial()
		require.Equal(t, 5*time.Second, d.at)
		deliver(d.accept(), 1, 1)
		wantMessage(t, c, 2, "1")
	})
}

func TestTheWaitThatTheServerAsksForOutlivesTheOldSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, old, _ := s.refusedRotation(backoff.RetryAfter(errors.New("too many"), time.Minute))
		time.Sleep(10 * time.Second)
		old.Fail(errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		d := s.wantDial()
		require.GreaterOrEqual(t, d.at, time.Minute)
		d.accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestARotationThatTheServerForbidsEndsAndTheSessionStays(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, old, done := s.refusedRotation(backoff.Permanent(errLost))
		require.Len(t, *done, 1)
		require.ErrorIs(t, (*done)[0], errLost)
		deliver(old, 1, 1)
		wantMessage(t, c, 1, "1")
		require.Equal(t, uint64(1), c.Stats().RotationsFailed)
		require.False(t, c.Status().Rotating)
		old.Fail(errors.New("later"))
		s.wantDial().accept() // the redial is the old supervisor's again
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// The rotation has ended when RotateDone is called, although the hook has not returned.
func TestRotateInRotateDoneOfFailedRotation(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.skipBreakFirst()
		failed := func() {}
		o := rotating(reconnect.OverlapHold)
		o.Run.Trace = &reconnect.Trace{RotateDone: func(reconnect.RotateDone) { failed() }}
		c, _ := s.ready(&o)
		time.Sleep(time.Minute) // in which the rotations before end
		synctest.Wait()
		failed = func() {
			failed = func() {}
			c.Rotate(s.session, reconnect.Advice{})
		}
		c.Rotate(s.session, reconnect.Advice{})
		s.wantDial().refuse(backoff.Permanent(errLost))
		s.wantDial().accept()
		require.Equal(t, s.session+1, c.Status().Session)
	})
}

// Close, at each step of a rotation, leaves nothing: goleak and the bubble see to that.
func TestCloseEndsARotationAtEachStep(t *testing.T) {
	steps := []string{"due", "dialing", "opening", "overlap", "over"}
	for stop := range steps {
		t.Run(steps[stop], func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := rotating(reconnect.OverlapHold)
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
				c := s.open(&o)
				s.wantDial().accept()
				c.Rotate(1, reconnect.Advice{Wait: time.Second})
				if stop >= 1 {
					d := s.wantDial()
					if stop >= 2 {
						d.accept()
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
				closeAndWait(c)
				require.Equal(t, reconnect.StateClosed, c.State())
			})
		})
	}
}

func TestRotateOfAnotherSessionDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		c.Rotate(0, reconnect.Advice{})
		s.wantDial().accept()
		c.Rotate(2, reconnect.Advice{})
		s.wantNoDial()
		c.Rotate(1, reconnect.Advice{})
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().accept()
		c.Rotate(2, reconnect.Advice{}) // the old one is still there, and three are too many
		s.wantNoDial()
	})
}

func TestSessionsAreReplacedAtTheirAge(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		o.Rotate.After = time.Hour
		s.ready(&o)
		last := time.Duration(0)
		for range 5 {
			d := s.wantDial()
			age := d.at - last
			require.GreaterOrEqual(t, age, 54*time.Minute)
			require.Less(t, age, time.Hour)
			last = d.at
			d.accept()
		}
	})
}

// A rotation that After has not requested is in progress at the age of the session, and fails then.
func TestSessionIsReplacedAtItsAgeThoughRotationFailed(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.skipBreakFirst()
		o := rotating(reconnect.OverlapHold)
		o.Rotate.After = time.Hour
		o.Run.Policy = hanging{}
		c, _ := s.ready(&o)
		time.Sleep(50 * time.Minute)
		c.Rotate(s.session, reconnect.Advice{})
		d := s.wantDial()
		d.connected()
		for s.now() < 61*time.Minute {
			d = s.wantDial() // instead of one that hangs
			d.connected()
		}
		d.refuse(backoff.Permanent(errLost))
		failed := s.now()
		require.False(t, c.Status().Rotating)
		require.LessOrEqual(t, s.wantDial().at, failed+time.Second)
	})
}

func TestAfterRequestsNoRotationThatTheServerHasForbidden(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.skipBreakFirst()
		o := rotating(reconnect.OverlapHold)
		o.Rotate.After = time.Hour
		s.fake = alive
		c, _ := s.ready(&o)
		s.wantDial().refuse(backoff.Permanent(errLost))
		time.Sleep(24 * time.Hour)
		s.wantNoDial()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.session, c.Status().Session)
	})
}

// Nobody speaks at the good moment for ever.
func TestASessionIsReplacedAtTheLastMomentThoughNoneWasGood(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		o.Rotate.After = 100 * time.Minute
		asked := 0
		o.Rotate.Allowed = func(time.Time) bool { asked++; return false }
		s.ready(&o)
		at := s.wantDial().at
		require.LessOrEqual(t, at, 99*time.Minute+time.Second)
		require.GreaterOrEqual(t, at, 99*time.Minute)
		require.Greater(t, asked, 1)
	})
}

// A Conn that rotates every few minutes for days does not grow.
func TestSessionsThatWereReplacedAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
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
		closeAndWait(c)
	})
}

// Nor does one that rotated once keep the session that came of it.
func TestTheSessionAfterARotationIsForgottenWhenItIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		next := s.wantDial().accept()
		time.Sleep(time.Minute)
		next.Fail(errLost)
		lost := weak.Make(next)
		next = nil
		s.wantDial().accept()
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
	withWSServer(t, greet, func(t *testing.T, server *wsServer) {
		c := server.ready(t, &reconnect.Options{Inbox: reconnect.Inbox{Messages: 2}, Rotate: reconnect.Rotation{Drain: time.Millisecond}})
		for range held {
			wantMessage(t, c, 1, "hello")
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
