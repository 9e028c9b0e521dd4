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
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 12.
func TestStateFollowsTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Minute))
		proceed := make(chan error)
		o.OnSession = func(context.Context, *reconnect.Opening) error { return <-proceed }
		c := s.open(&o)
		require.Equal(t, reconnect.StateConnecting, c.State())
		peer := s.wantDial().accept()
		require.Equal(t, reconnect.StateOpening, c.State())
		proceed <- nil
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		peer.Fail(errLost)
		synctest.Wait()
		st := c.Status()
		require.Equal(t, reconnect.StateWaiting, st.State)
		require.ErrorIs(t, st.Err, errLost)
		require.Equal(t, uint64(1), st.Session)
		require.Equal(t, time.Now().Add(time.Minute), st.Next)
		closeAndWait(c)
		require.Equal(t, reconnect.StateClosed, c.State())
	})
}

// Promise 12.
func TestEachTryIsConnectingAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, time.Now(), c.Status().Since)
		s.wantDial()
		require.Equal(t, reconnect.StateConnecting, c.State())
		require.Zero(t, c.Status().Next)
		require.ErrorIs(t, c.Status().Err, errLost, "until there is better news")
	})
}

// The session that is replaced took three dials.
func TestARotationCountsItsDialsFromOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().refuse(errLost)
		s.wantDial().accept()
		require.Equal(t, 2, c.Status().Try)
		c.Rotate(1, reconnect.Advice{})
		s.wantDial().accept()
		require.Zero(t, c.Status().Try)
	})
}

// The dial of the rotation goes on, and its supervisor has not judged the loss.
func TestALossDuringARotationHasItsVerdictInTheStatus(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := rotating(reconnect.OverlapHold)
		c := s.open(&o)
		old := s.wantDial().accept()
		c.Rotate(1, reconnect.Advice{})
		s.wantDial()
		old.Fail(backoff.Slow(errLost))
		synctest.Wait()
		require.ErrorIs(t, c.Status().Err, errLost)
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		require.ErrorIs(t, c.AwaitReady(t.Context()), errLost)
	})
}

func TestADialThatHangsHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Run.Policy = every(time.Second)
		c, d := s.hang(o)
		defer d.refuse(errLost)
		require.Equal(t, reconnect.StateConnecting, c.State())
		require.Equal(t, reconnect.StateConnecting, c.Status().State)
		require.Zero(t, c.Stats().Sessions)
		queue(t, c, "a")
		c.Kick()
		c.Check()
		require.ErrorIs(t, c.WriteTo(t.Context(), 1, text("x")), reconnect.ErrSessionLost)
		require.Zero(t, s.now())
	})
}

// Promise 12: when OnSeam is called, the status has the loss.
func TestTheStatusKnowsOfALossBeforeOnSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		var status reconnect.Status
		o := withPolicy(every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.OnSeam = func(context.Context, *reconnect.Seam) { status = c.Status() }
		c = s.open(&o)
		s.wantDial().refuse(errLost)
		c.Kick()
		peer := s.wantDial().accept()
		require.NoError(t, c.Status().Err, "a ready session is the end of old news")
		peer.Fail(errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.ErrorIs(t, status.Err, errLost)
	})
}

// Promise 12: the status has the cause of a loss, though the supervisor is in OnMessage and has
// not noticed the loss.
func TestTheStatusHasTheCauseOfALossAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		var status reconnect.Status
		o := withPolicy(every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			c.Redial(m.Session, errLost)
			status = c.Status()
		}
		c = s.open(&o)
		s.wantDial().accept().Deliver(text("nonsense"))
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, status.State)
		require.ErrorIs(t, status.Err, errLost)
	})
}

// Promise 12: in a hook, the status is as new as the event.
func TestStatusIsAsNewAsTheEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		var c *reconnect.Conn
		var start, end reconnect.Status
		o.Run.Trace = &reconnect.Trace{
			SessionStart: func(*reconnect.Session) { start = c.Status() },
			ConnDone:     func(reconnect.ConnDone) { end = c.Status() },
		}
		c = s.open(&o)
		s.wantDial().accept()
		closeAndWait(c)
		require.Equal(t, "1 opening", fmt.Sprint(start.Session, start.State))
		require.Equal(t, reconnect.StateClosed, end.State)
	})
}

// Promise 12.
func TestAwaitSeesAStateThatIsThereAlready(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		require.NoError(t, c.Await(t.Context(), reconnect.StateConnecting))
		s.wantDial().accept()
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	})
}

// Promise 12.
func TestAwaitWakesEverybody(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		woken := make(chan error, 10)
		for range cap(woken) {
			go func() { woken <- c.Await(t.Context(), reconnect.StateReady) }()
		}
		synctest.Wait()
		s.wantDial().accept()
		for range cap(woken) {
			require.NoError(t, <-woken)
		}
	})
}

func TestAwaitEndsWithItsContextOrTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		require.ErrorIs(t, c.Await(ctx, reconnect.StateReady), errLost)
		go c.Close()
		err := c.Await(t.Context(), reconnect.StateReady)
		<-c.Done() // Err is nil before
		require.ErrorIs(t, err, c.Err())
		require.NoError(t, c.Await(t.Context(), reconnect.StateClosed))
	})
}

// Promise 12: Await returns when State changes, though the supervisor is busy with a message.
func TestAwaitSeesALossThatTheSupervisorDoesNotSeeYet(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		release := make(chan struct{})
		o := withPolicy(every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) { <-release }
		c := s.open(&o)
		s.wantDial().accept().Deliver(text("m"))
		synctest.Wait()
		awaited := make(chan error, 1)
		go func() { awaited <- c.Await(t.Context(), reconnect.StateWaiting) }()
		synctest.Wait()
		require.Empty(t, awaited)
		c.Redial(1, errLost)
		require.NoError(t, <-awaited)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Status().Err, errLost)
		close(release)
	})
}

// The error of Await says why there is no connection.
func TestAwaitSaysWhatIsInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Await(ctx, reconnect.StateReady)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errLost)
		require.EqualError(t, err, "not ready but waiting (the next dial begins in 59m59s): context deadline exceeded: lost")
		var await *reconnect.AwaitError
		require.ErrorAs(t, err, &await)
		require.Equal(t, reconnect.StateWaiting, await.Status.State)
	})
}

// After Close no dial comes, so AwaitReady must not say when the next one begins.
func TestAwaitReadyAfterCloseSaysThatTheConnIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().refuse(answered(404))
		s.wantDial().refuse(answered(404))
		synctest.Wait()
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		c.Close()
		require.ErrorIs(t, c.AwaitReady(t.Context()), net.ErrClosed)
	})
}

// AwaitReady fails if waiting is of no use until somebody mends something.
func TestAwaitReadyFailsAtOnceWhereSomebodyMustMendSomething(t *testing.T) {
	for _, code := range []int{401, 404} {
		inBubble(t, func(t *testing.T, s *scene) {
			c := s.open(nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			awaited := make(chan error, 1)
			go func() { awaited <- c.AwaitReady(ctx) }()
			s.wantDial().refuse(errLost)
			require.Empty(t, awaited, "a server that is away may come")
			if code == 404 {
				s.wantDial().refuse(answered(code))
				require.Equal(t, backoff.ClassRetry, c.Status().Verdict)
				require.Empty(t, awaited, "the first may be a deploy")
			}
			s.wantDial().refuse(answered(code))
			err := <-awaited
			require.ErrorIs(t, err, answered(code))
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, fmt.Sprintf("not ready but waiting (the next dial begins in %v): answered", time.Until(c.Status().Next).Round(100*time.Millisecond)))
			s.wantDial().accept()
			require.NoError(t, c.AwaitReady(t.Context()), "the Conn has gone on")
		})
	}
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		awaited := make(chan error, 1)
		go func() { awaited <- c.AwaitReady(t.Context()) }()
		for range 3 { // the name of a server that is started at the same time
			s.wantDial().refuse(&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true})
			require.Empty(t, awaited)
		}
		require.Equal(t, backoff.ClassSlow, c.Status().Verdict)
		s.wantDial().accept()
		require.NoError(t, <-awaited)
	})
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().refuse(answered(410))
		require.ErrorIs(t, c.AwaitReady(t.Context()), answered(410))
		require.ErrorIs(t, c.AwaitReady(t.Context()), net.ErrClosed)
	})
}

// deaf is a connection whose writes fail while its reads go on.
type deaf struct{ conn.Conn }

func (deaf) Write(conn.Message) error { return errLost }

func TestAwaitSeesFailedWriteWhenStateDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			return deaf{conntest.NewFake(nil).Conn()}, nil
		}), nil)
		require.NoError(t, err)
		defer closeAndWait(c)
		require.NoError(t, c.AwaitReady(t.Context()))
		seen := make(chan error, 1)
		go func() { seen <- c.Await(context.Background(), reconnect.StateWaiting) }()
		synctest.Wait()
		require.Error(t, c.Write(t.Context(), text("x")))
		require.Equal(t, reconnect.StateWaiting, c.State())
		synctest.Wait() // the reader has a second for the peer's last words, so the session has not ended yet
		require.Len(t, seen, 1)
		require.NoError(t, <-seen)
	})
}
