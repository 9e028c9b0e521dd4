package meter_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

func TestALossAndTheReturnAreCountedAndTimed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open("feed", reconnect.Options{})
		peer := s.accept()
		time.Sleep(20 * time.Second)
		peer.Fail(io.EOF)
		s.refuse(syscall.ECONNREFUSED)
		s.accept()

		require.Equal(t, 2, s.count("feed dials ok none"))
		require.Equal(t, 1, s.count("feed dials failed refused"))
		require.Equal(t, []float64{1, 1}, s.observed("feed dial.duration ok"))
		require.Equal(t, []float64{1}, s.observed("feed dial.duration failed"))
		require.Equal(t, 2, s.count("feed sessions"))
		require.Equal(t, 2, s.count("feed ready_sessions"))
		require.Equal(t, []float64{20}, s.observed("feed session.duration hangup"))
		require.Equal(t, []float64{10, 10}, s.observed("feed wait.duration"))
		require.Equal(t, []float64{22}, s.observed("feed outage.duration false"))
		require.Equal(t, 1, s.count("feed seams false"))
		require.Equal(t, 0, s.count("feed seams true"))
	})
}

// A session that was never ready is no seam and ends no outage.
func TestASessionThatWasNotReadyIsNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		fail := true
		s.open("feed", reconnect.Options{OnSession: func(context.Context, *reconnect.Opening) error {
			if fail {
				return errors.New("login refused")
			}
			return nil
		}})
		s.accept()
		fail = false
		s.accept()
		require.Equal(t, 2, s.count("feed sessions"))
		require.Equal(t, 1, s.count("feed ready_sessions"))
		require.Equal(t, []float64{0}, s.observed("feed session.duration other"))
		require.Zero(t, s.count("feed seams false"))
		require.Empty(t, s.observed("feed outage.duration false"))
	})
}

// The end of the Conn is neither a seam nor an outage.
func TestCloseIsNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		s.accept()
		time.Sleep(time.Second)
		require.NoError(t, c.Shutdown(t.Context()))
		require.Zero(t, s.count("feed seams false"))
		require.Equal(t, []float64{1}, s.observed("feed session.duration shutdown"))
		require.Equal(t, 1, s.count("feed ends closed"))
		require.Equal(t, 0, s.count("feed ends failed"))
	})
}

func TestADialThatWeEndIsCanceled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		<-s.dials
		closeAndWait(c)
		require.Equal(t, 1, s.count("feed dials canceled none"))
		require.Len(t, s.observed("feed dial.duration canceled"), 1)
	})
}

func TestAConnThatEndsByItselfHasFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		s.refuse(backoff.Permanent(errors.New("gone")))
		<-c.Done()
		require.Equal(t, 1, s.count("feed ends failed"))
	})
}

// A session that was replaced is a planned seam. With Hold there is no outage; with BreakFirst there
// is one, which is planned.
func TestARotationIsPlanned(t *testing.T) {
	for overlap, outages := range map[reconnect.Overlap][]float64{
		reconnect.OverlapHold: nil, reconnect.OverlapMix: nil, reconnect.OverlapBreakFirst: {1},
	} {
		inBubble(t, func(t *testing.T, s *scene) {
			c := s.open("feed", reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap}})
			s.accept()
			c.Rotate(1, reconnect.Advice{Cause: errors.New("moved")})
			synctest.Wait()
			s.accept()
			time.Sleep(time.Minute)
			require.Equal(t, 1, s.count("feed seams true"), overlap)
			require.Equal(t, 0, s.count("feed seams false"), overlap)
			require.Equal(t, 1, s.count("feed rotations replaced"), overlap)
			require.Equal(t, outages, s.observed("feed outage.duration true"), overlap)
			require.Empty(t, s.observed("feed outage.duration false"), overlap)
			require.Zero(t, s.away("feed"))
		})
	}
}

// An attempt that fails while the session that it should replace goes on is no loss.
func TestAFailedAttemptOfARotationIsNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if o.Session == 2 {
				return errors.New("not now")
			}
			return nil
		}})
		s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		s.accept()
		require.Equal(t, 0, s.count("feed seams false")+s.count("feed seams true"))
		require.Zero(t, s.away("feed"))
	})
}

// Redial is for a session that is broken. It is a loss, as Seam.Planned says.
func TestARedialIsNotPlanned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		s.accept()
		c.Redial(1, errors.New("a gap"))
		s.accept()
		require.Equal(t, 1, s.count("feed seams false"))
		require.Equal(t, 0, s.count("feed seams true"))
		require.Equal(t, []float64{11}, s.observed("feed outage.duration false"))
		require.Len(t, s.observed("feed session.duration redial"), 1)
	})
}

// The old session is lost before there is another: the rotation has failed, and the loss is no
// planned one.
func TestALossDuringARotationIsNotPlanned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		peer := s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		peer.Fail(io.EOF)
		s.accept()
		require.Equal(t, 1, s.count("feed rotations failed"))
		require.Equal(t, 1, s.count("feed seams false"))
		require.Equal(t, []float64{1}, s.observed("feed outage.duration false"))
	})
}

// The server ends the old session as soon as the next one is ready. The seam is planned, whatever the
// last error of the old session was.
func TestASessionThatEndsAfterItWasReplacedIsPlanned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		old := s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		s.accept()
		old.Fail(io.EOF)
		synctest.Wait()
		require.Len(t, s.observed("feed session.duration hangup"), 1)
		require.Equal(t, 1, s.count("feed seams true"))
		require.Equal(t, 0, s.count("feed seams false"))
	})
}

// An outage is over when a session is ready. The rotations after it are none, with or without one
// before.
func TestRotationsBesideAnOutageAreNoOutages(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		rotate := func(session uint64) *conntest.Fake {
			c.Rotate(session, reconnect.Advice{})
			synctest.Wait()
			peer := s.accept()
			time.Sleep(time.Minute)
			return peer
		}
		s.accept()
		rotate(1)
		rotate(2).Fail(io.EOF)
		s.accept()
		rotate(4)
		rotate(5)
		require.Equal(t, 4, s.count("feed seams true"))
		require.Equal(t, 1, s.count("feed seams false"))
		require.Equal(t, []float64{11}, s.observed("feed outage.duration false"))
		require.Empty(t, s.observed("feed outage.duration true"))
	})
}

// The next session is lost while the old one is still read. That loss is no planned one, and begins an
// outage: nothing can be sent.
func TestALossOfTheNextSessionWhileTheOldOneIsReadIsNotPlanned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{})
		s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		s.accept().Fail(io.EOF)
		synctest.Wait()
		require.Equal(t, 1, s.count("feed seams false"))
		time.Sleep(time.Second)
		require.Equal(t, time.Second, s.away("feed"))
		s.accept()
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.count("feed seams true"))
		require.Equal(t, 1, s.count("feed seams false"))
		require.Equal(t, []float64{11}, s.observed("feed outage.duration false"))
		require.Empty(t, s.observed("feed outage.duration true"))
	})
}

// Watch begins while the next session is ready and the old one is still read.
func TestWatchDuringARotationSeesTheSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.unmeasured(reconnect.Options{})
		s.accept()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		s.accept()
		defer s.m.Watch(c, meter.Source{Name: "feed"})()
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.count("feed seams true"))
		require.Zero(t, s.away("feed"))
	})
}

func TestProbesAreCountedByOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = conntest.FakeOptions{Pings: true, Transport: true}
		s.open("feed", reconnect.Options{})
		peer := s.accept()
		peer.PongAfter(time.Second)
		time.Sleep(15 * time.Second)
		require.Equal(t, 1, s.count("feed probes ok"))
		require.Equal(t, []float64{1}, s.observed("feed probe.duration"))
		peer.Mute()
		time.Sleep(time.Minute)
		require.Positive(t, s.count("feed probes failed"))
		require.Equal(t, []float64{1}, s.observed("feed probe.duration"), "only of those that were answered")
		require.Len(t, s.observed("feed session.duration silent"), 1)
	})
}

func TestWhatHangsIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		trace := s.m.Trace(meter.Source{Name: "run"})
		trace.Overdue(reconnect.Overdue{What: "OnMessage"})
		trace.Overdue(reconnect.Overdue{What: "what a later version says"})
		trace.DialHung(reconnect.DialHung{})
		trace.Overdue(reconnect.Overdue{What: "Trace.SessionDone"})
		trace.Overdue(reconnect.Overdue{What: "Layer.Lost"})
		trace.Overdue(reconnect.Overdue{What: "the gate's done"})
		trace.SlowHandler(reconnect.SlowHandler{})
		require.Equal(t, 1, s.count("run overdue OnMessage"))
		require.Equal(t, 1, s.count("run overdue other"))
		require.Equal(t, 1, s.count("run hung_dials"))
		require.Equal(t, 1, s.count("run overdue a hook"))
		require.Equal(t, 1, s.count("run overdue a layer"))
		require.Equal(t, 1, s.count("run overdue the gate's done"))
		require.Equal(t, 1, s.count("run slow_handlers"))
	})
}

// A gate that refuses at once is no gate that does not wait.
func TestWaitsAtTheGateAreObservedByOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open("feed", reconnect.Options{Run: reconnect.RunOptions{Host: "host", Gate: new(gate)}})
		s.accept().Fail(io.EOF)
		time.Sleep(22 * time.Second) // two waits of 10 s
		closeAndWait(c)
		require.Equal(t, []float64{0}, s.observed("feed gate.wait ok"))
		require.Equal(t, []float64{0}, s.observed("feed gate.wait failed"))
		require.Equal(t, []float64{2}, s.observed("feed gate.wait canceled"))
	})
}

// A dial that timed out has failed, though a context has ended; one that we have ended has not.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		err             error
		outcome, reason string
	}{
		{nil, meter.OK, meter.None},
		{context.Canceled, meter.Canceled, meter.None},
		{&net.OpError{Op: "dial", Err: context.Canceled}, meter.Canceled, meter.None},
		{net.ErrClosed, meter.Canceled, meter.None},
		{errors.Join(backoff.ErrHung, context.Canceled), meter.Failed, "timeout"},
		{context.DeadlineExceeded, meter.Failed, "timeout"},
		{syscall.ECONNREFUSED, meter.Failed, "refused"},
		{errors.New("secret=hunter2"), meter.Failed, "other"},
	} {
		outcome, reason := meter.Judge(c.err)
		require.Equal(t, c.outcome, outcome, c.err)
		require.Equal(t, c.reason, reason, c.err)
	}
}

// A Run that has ended by itself is there until the next one begins.
func TestARunThatGivesUpIsCountedUntilTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		run := func(err error) {
			_ = reconnect.Run(t.Context(), func(context.Context) (io.Closer, error) { return nil, err },
				func(context.Context, io.Closer, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Trace: s.m.Trace(meter.Source{Name: "run"})})
		}
		ended := func() (value float64) {
			got := s.totals("run")
			for _, i := range meter.Instruments() {
				if i.Name == "connections" {
					i.Read(&got, func(v float64, labels meter.Values) {
						if labels[0] == "ended" {
							value = v
						}
					})
				}
			}
			return value
		}
		run(backoff.Permanent(io.EOF))
		require.Equal(t, 1, s.count("run ends failed"))
		time.Sleep(time.Hour)
		require.Equal(t, 1.0, ended())
		s.m.Trace(meter.Source{Name: "run"})
		require.Zero(t, ended())
		run(backoff.Permanent(io.EOF))
		run(backoff.Permanent(io.EOF))
		require.Equal(t, 1.0, ended())
	})
}

// A Run has no Conn, so that nothing is collected.
func TestARunIsMeasuredByItsTrace(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = reconnect.Run(ctx, func(context.Context) (io.Closer, error) { return io.NopCloser(nil), nil },
			func(_ context.Context, _ io.Closer, s *reconnect.Session) error {
				s.Ready()
				time.Sleep(25 * time.Second)
				return io.EOF
			}, &reconnect.RunOptions{Trace: s.m.Trace(meter.Source{Name: "run"})})
		require.Equal(t, []float64{25, 25}, s.observed("run session.duration hangup"))
		require.Equal(t, 1, s.count("run ends closed"))
		for _, i := range meter.Instruments() {
			if i.Collected() {
				got := s.totals("run")
				i.Read(&got, func(float64, meter.Values) { t.Error(i.Name) })
			}
		}
	})
}
