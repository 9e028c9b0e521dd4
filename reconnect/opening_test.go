package reconnect_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 4.
func TestOnSessionHasSoleUseOfTheWire(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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

// Promise 4: what came between is handed on, in order, with its session.
func TestDeliverKeepsTheOrder(t *testing.T) {
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

// Promise 4: a failure is a failed attempt, whose connection is closed.
func TestAFailedOnSessionIsAFailedAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
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

// Promises 4 and 10.
func TestOnSessionHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		var verdict backoff.Verdict
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.Wait) { verdict = w.Verdict }}
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			_, err := op.Read() // which the end of the limit unblocks
			return err
		}
		c := s.open(&o)
		s.wantDial().accept()
		require.Equal(t, 31*time.Second, s.wantDial().at)
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
		require.EqualError(t, c.Status().Err, "open: not ready within 30s")
		require.Equal(t, backoff.ClassOverload, verdict.Class)
	})
}

// Promise 4: being late is a failure even if OnSession did not notice.
func TestAnOnSessionThatIsLateHasFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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

// Promise 9: login can end it all, or ask for patience.
func TestOnSessionDecidesByMarks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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

func TestOpeningTellsWhatHappenedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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
