package run_test

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
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 12.
func TestStateFollowsTheConnection(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Minute))
		proceed := make(chan error)
		o.OnSession = func(context.Context, *reconnect.Opening) error { return <-proceed }
		c := s.Open(&o)
		require.Equal(t, reconnect.StateConnecting, c.State())
		peer := s.WantDial().Accept()
		require.Equal(t, reconnect.StateOpening, c.State())
		proceed <- nil
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		st := c.Status()
		require.Equal(t, reconnect.StateWaiting, st.State)
		require.ErrorIs(t, st.Err, scene.ErrLost)
		require.Equal(t, uint64(1), st.Session)
		require.Equal(t, time.Now().Add(time.Minute), st.Next)
		scene.CloseAndWait(c)
		require.Equal(t, reconnect.StateClosed, c.State())
	})
}

// Promise 12.
func TestEachTryIsConnectingAgain(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, time.Now(), c.Status().Since)
		s.WantDial()
		require.Equal(t, reconnect.StateConnecting, c.State())
		require.Zero(t, c.Status().Next)
		require.ErrorIs(t, c.Status().Err, scene.ErrLost, "until there is better news")
	})
}

// The session that is replaced took three dials.
func TestARotationCountsItsDialsFromOne(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept()
		require.Equal(t, 2, c.Status().Try)
		c.Rotate(1, reconnect.Advice{})
		s.WantDial().Accept()
		require.Zero(t, c.Status().Try)
	})
}

// The dial of the rotation goes on, and its supervisor has not judged the loss.
func TestALossDuringARotationHasItsVerdictInTheStatus(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.Rotating(reconnect.OverlapHold)
		c := s.Open(&o)
		old := s.WantDial().Accept()
		c.Rotate(1, reconnect.Advice{})
		s.WantDial()
		old.Fail(backoff.Slow(scene.ErrLost))
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		require.ErrorIs(t, c.AwaitReady(t.Context()), scene.ErrLost)
	})
}

func TestADialThatHangsHoldsUpNobody(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Run.Policy = scene.Every(time.Second)
		c, d := s.Hang(o)
		defer d.Refuse(scene.ErrLost)
		require.Equal(t, reconnect.StateConnecting, c.State())
		require.Equal(t, reconnect.StateConnecting, c.Status().State)
		require.Zero(t, c.Stats().Sessions)
		scene.Queue(t, c, "a")
		c.Kick()
		c.Check()
		require.ErrorIs(t, c.WriteTo(t.Context(), 1, scene.Text("x")), reconnect.ErrSessionLost)
		require.Zero(t, s.Now())
	})
}

// Promise 12: when OnSeam is called, the status has the loss.
func TestTheStatusKnowsOfALossBeforeOnSeam(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var status reconnect.Status
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(context.Context, *reconnect.Seam) { status = c.Status() }
		c = s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		c.Kick()
		peer := s.WantDial().Accept()
		require.NoError(t, c.Status().Err, "a ready session is the end of old news")
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.ErrorIs(t, status.Err, scene.ErrLost)
	})
}

// Promise 12: the status has the cause of a loss, though the supervisor is in OnMessage and has
// not noticed the loss.
func TestTheStatusHasTheCauseOfALossAtOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var status reconnect.Status
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			c.Redial(m.Session, scene.ErrLost)
			status = c.Status()
		}
		c = s.Open(&o)
		s.WantDial().Accept().Deliver(scene.Text("nonsense"))
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.ErrorIs(t, status.Err, scene.ErrLost)
	})
}

// Promise 12: in a hook, the status is as new as the event.
func TestStatusIsAsNewAsTheEvent(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		var c *reconnect.Conn
		var start, end reconnect.Status
		o.Run.Trace = &reconnect.Trace{
			SessionStart: func(*reconnect.Session) { start = c.Status() },
			ConnDone:     func(reconnect.ConnDone) { end = c.Status() },
		}
		c = s.Open(&o)
		s.WantDial().Accept()
		scene.CloseAndWait(c)
		require.Equal(t, "1 opening", fmt.Sprint(start.Session, start.State))
		require.Equal(t, reconnect.StateClosed, end.State)
	})
}

// Promise 12.
func TestAwaitSeesAStateThatIsThereAlready(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
		s.WantDial().Accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	})
}

// Promise 12.
func TestAwaitWakesEverybody(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		woken := make(chan error, 10)
		for range cap(woken) {
			go func() { woken <- c.Await(t.Context(), reconnect.StateReady) }()
		}
		synctest.Wait()
		s.WantDial().Accept()
		for range cap(woken) {
			require.NoError(t, <-woken)
		}
	})
}

func TestAwaitEndsWithItsContextOrTheConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		require.ErrorIs(t, c.Await(ctx, reconnect.StateReady), scene.ErrLost)
		go c.Close()
		err := c.Await(t.Context(), reconnect.StateReady)
		<-c.Done() // Err is nil before
		require.ErrorIs(t, err, c.Err())
		require.NoError(t, c.Await(t.Context(), reconnect.StateClosed))
	})
}

// Promise 12: Await returns when State changes, though the supervisor is busy with a message.
func TestAwaitSeesALossThatTheSupervisorDoesNotSeeYet(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		release := make(chan struct{})
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) { <-release }
		c := s.Open(&o)
		s.WantDial().Accept().Deliver(scene.Text("m"))
		synctest.Wait()
		awaited := make(chan error, 1)
		go func() { awaited <- c.Await(t.Context(), reconnect.StateWaiting) }()
		synctest.Wait()
		require.Empty(t, awaited)
		c.Redial(1, scene.ErrLost)
		require.NoError(t, <-awaited)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
		close(release)
	})
}

// The error of Await says why there is no connection.
func TestAwaitSaysWhatIsInTheWay(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c := s.Open(&o)
		s.WantDial().Refuse(scene.ErrLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Await(ctx, reconnect.StateReady)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, scene.ErrLost)
		require.EqualError(t, err, "not ready but waiting (the next dial begins in 59m59s): context deadline exceeded: lost")
		var await *reconnect.AwaitError
		require.ErrorAs(t, err, &await)
		require.Equal(t, reconnect.StateWaiting, await.Status.State)
	})
}

// After Close no dial comes, so AwaitReady must not say when the next one begins.
func TestAwaitReadyAfterCloseSaysThatTheConnIsClosed(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Refuse(scene.Answered(404))
		s.WantDial().Refuse(scene.Answered(404))
		synctest.Wait()
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		c.Close()
		require.ErrorIs(t, c.AwaitReady(t.Context()), net.ErrClosed)
	})
}

// AwaitReady fails if waiting is of no use until somebody mends something.
func TestAwaitReadyFailsAtOnceWhereSomebodyMustMendSomething(t *testing.T) {
	for _, code := range []int{401, 404} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			c := s.Open(nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			awaited := make(chan error, 1)
			go func() { awaited <- c.AwaitReady(ctx) }()
			s.WantDial().Refuse(scene.ErrLost)
			require.Empty(t, awaited, "a server that is away may come")
			if code == 404 {
				s.WantDial().Refuse(scene.Answered(code))
				require.Equal(t, backoff.ClassRetry, c.Status().Verdict)
				require.Empty(t, awaited, "the first may be a deploy")
			}
			s.WantDial().Refuse(scene.Answered(code))
			err := <-awaited
			require.ErrorIs(t, err, scene.Answered(code))
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, fmt.Sprintf("not ready but waiting (the next dial begins in %v): answered", time.Until(c.Status().Next).Round(100*time.Millisecond)))
			s.WantDial().Accept()
			require.NoError(t, c.AwaitReady(t.Context()), "the Conn has gone on")
		})
	}
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		awaited := make(chan error, 1)
		go func() { awaited <- c.AwaitReady(t.Context()) }()
		for range 3 { // the name of a server that is started at the same time
			s.WantDial().Refuse(&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true})
			require.Empty(t, awaited)
		}
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		s.WantDial().Accept()
		require.NoError(t, <-awaited)
	})
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Refuse(scene.Answered(410))
		require.ErrorIs(t, c.AwaitReady(t.Context()), scene.Answered(410))
		require.ErrorIs(t, c.AwaitReady(t.Context()), net.ErrClosed)
	})
}

// deaf is a connection whose writes fail while its reads go on.
type deaf struct{ conn.Conn }

func (deaf) Write(conn.Message) error { return scene.ErrLost }

func TestAwaitSeesFailedWriteWhenStateDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			return deaf{conntest.NewFake(nil).Conn()}, nil
		}), nil)
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		require.NoError(t, c.AwaitReady(t.Context()))
		seen := make(chan error, 1)
		go func() { seen <- c.Await(context.Background(), reconnect.StateWaiting) }()
		synctest.Wait()
		require.Error(t, c.Write(t.Context(), scene.Text("x")))
		require.Equal(t, reconnect.StateWaiting, c.State())
		synctest.Wait() // the reader has a second for the peer's last words, so the session has not ended yet
		require.Len(t, seen, 1)
		require.NoError(t, <-seen)
	})
}
