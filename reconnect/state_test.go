package reconnect_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 12.
func TestStateFollowsTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Minute))
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
		quit(c)
		require.Equal(t, reconnect.StateClosed, c.State())
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
		require.ErrorIs(t, c.Await(t.Context(), reconnect.StateReady), c.Err())
		require.NoError(t, c.Await(t.Context(), reconnect.StateClosed))
	})
}

// Promise 14: hooks come in order and in pairs.
func TestTraceSeesEachStep(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := run(every(time.Second))
		o.Run.Trace = recorder(&seen)
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().accept().Fail(errLost)
		s.wantDial().accept()
		quit(c)
		require.Equal(t, []string{
			"dial", "dialed lost", "wait", "waited",
			"dial", "dialed ok", "session 1", "ready 1", "session 1 ended", "wait", "waited",
			"dial", "dialed ok", "session 2", "ready 2", "session 2 ended", "end",
		}, seen.all())
	})
}

func recorder(n *notes) *reconnect.Trace {
	number := func(s uint64) string { return string('0' + rune(s)) }
	return &reconnect.Trace{
		DialStart: func(reconnect.DialStart) { n.add("dial") },
		DialDone: func(d reconnect.DialDone) {
			if d.Err == nil {
				n.add("dialed ok")
			} else {
				n.add("dialed " + d.Err.Error())
			}
		},
		SessionStart: func(s *reconnect.Session) { n.add("session " + number(s.Number)) },
		SessionReady: func(s *reconnect.Session) { n.add("ready " + number(s.Number)) },
		SessionDone:  func(e reconnect.SessionEnd) { n.add("session " + number(e.Session) + " ended") },
		WaitStart:    func(reconnect.Wait) { n.add("wait") },
		WaitDone:     func(reconnect.WaitDone) { n.add("waited") },
		End:          func(reconnect.End) { n.add("end") },
	}
}

// gate is a Gate that notes what it is told.
type gate struct{ notes }

func (g *gate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	g.add("acquire " + host)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(v backoff.Verdict) { g.add("done " + v.Class.String()) }, nil
}

func TestEachDialPassesTheGateOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := run(every(time.Second))
		o.Run.Gate, o.Run.Host = g, "h"
		fail := errors.New("not today")
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return fail
			}
			return nil
		}
		s.open(&o)
		d := s.wantDial()
		require.Equal(t, time.Second, d.at, "the first dial passes it too")
		d.refuse(answered(503))
		s.wantDial().accept() // the gate is told when OnSession has failed
		s.wantDial().accept()
		ok := backoff.ClassOK.String()
		require.Equal(t, []string{
			"acquire h", "done " + backoff.ClassOverload.String(),
			"acquire h", "done " + ok, "acquire h", "done " + ok,
		}, g.all())
	})
}

// Promise 11: closing while waiting at the gate does not wait for it.
func TestCloseLeavesTheGate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(nil)
		o.Run.Gate, o.Run.Host = &gate{}, "h"
		c := s.open(&o)
		synctest.Wait()
		quit(c)
		require.Equal(t, time.Duration(0), s.now())
	})
}

// Promise 12: Await sees that a connection is lost when State does, though the
// supervisor is busy with a message.
func TestAwaitSeesALossThatTheSupervisorDoesNotSeeYet(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		release := make(chan struct{})
		o := run(every(time.Hour))
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

// Whoever waits for a connection learns why there is none.
func TestAwaitSaysWhatIsInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Await(ctx, reconnect.StateReady)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errLost)
		require.EqualError(t, err, "not ready but waiting: context deadline exceeded: lost")
		var await *reconnect.AwaitError
		require.ErrorAs(t, err, &await)
		require.True(t, await.Timeout())
		require.Equal(t, reconnect.StateWaiting, await.Status.State)
	})
}

// AwaitReady fails where waiting is of no use until somebody mends something.
func TestAwaitReadyFailsAtOnceWhereSomebodyMustMendSomething(t *testing.T) {
	for _, code := range []int{401, 404} {
		inBubble(t, func(t *testing.T, s *scene) {
			c := s.open(nil)
			awaited := make(chan error, 1)
			go func() { awaited <- c.AwaitReady(t.Context()) }()
			s.wantDial().refuse(errLost)
			require.Empty(t, awaited, "a server that is away may come")
			s.wantDial().refuse(answered(code))
			err := <-awaited
			require.ErrorIs(t, err, answered(code))
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			s.wantDial().accept()
			require.NoError(t, c.AwaitReady(t.Context()), "the Conn has gone on")
		})
	}
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().refuse(answered(410))
		require.ErrorIs(t, c.AwaitReady(t.Context()), answered(410))
		require.ErrorIs(t, c.AwaitReady(t.Context()), net.ErrClosed)
	})
}

// Every event says which connection it is, and so does the log.
// The same for those that come only when something takes long.
func TestEventsOfWhatTakesLongCarryTheNameOfTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		s.fake = alive
		o := run(hanging{})
		o.Name = "feed"
		o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
		o.Run.Trace = &reconnect.Trace{
			DialHung:    func(e reconnect.DialHung) { n.add("hung " + e.Name) },
			SlowHandler: func(e reconnect.SlowHandler) { n.add("slow " + e.Name) },
			Overdue:     func(e reconnect.Overdue) { n.add("overdue " + e.Name) },
		}
		c := s.open(&o)
		s.wantDial().connected()
		deliver(s.wantDial().accept(), 1, 1)
		time.Sleep(50 * time.Second)
		quit(c)
		require.Equal(t, []string{"hung feed", "slow feed", "overdue feed"}, slices.Compact(n.all()))
	})
}

func TestEventsCarryTheNameOfTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var n notes
		s.fake = alive
		o := run(every(time.Second))
		o.Name, o.Run.Gate, o.Run.Host = "feed", &gate{}, "h"
		o.Run.Trace = &reconnect.Trace{
			GateStart:    func(e reconnect.GateStart) { n.add(e.Name) },
			GateDone:     func(e reconnect.GateDone) { n.add(e.Name) },
			DialStart:    func(e reconnect.DialStart) { n.add(e.Name) },
			DialDone:     func(e reconnect.DialDone) { n.add(e.Name) },
			SessionStart: func(e *reconnect.Session) { n.add(e.Name) },
			SessionReady: func(e *reconnect.Session) { n.add(e.Name) },
			SessionDone:  func(e reconnect.SessionEnd) { n.add(e.Name) },
			WaitStart:    func(e reconnect.Wait) { n.add(e.Name) },
			WaitDone:     func(e reconnect.WaitDone) { n.add(e.Name) },
			ProbeStart:   func(e reconnect.ProbeStart) { n.add(e.Name) },
			ProbeDone:    func(e reconnect.ProbeDone) { n.add(e.Name) },
			End:          func(e reconnect.End) { n.add(e.Name) },
		}
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept()
		time.Sleep(11 * time.Second)
		peer.Fail(errLost)
		synctest.Wait()
		quit(c)
		require.Equal(t, slices.Repeat([]string{"feed"}, 18), n.all())
	})
}
