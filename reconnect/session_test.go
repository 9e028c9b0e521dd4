package reconnect_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// pipe is what the dials of a bare Run bring in these tests: a Closer that notes
// its closes, each of which takes some time.
type pipe struct {
	takes   time.Duration
	closing int // closes under way
	closed  bool
}

func (p *pipe) Close() error {
	p.closing++
	time.Sleep(p.takes)
	p.closing--
	p.closed = true
	return nil
}

// Promise 3: a session that was ready for less than StableAfter is not stable,
// though the wait before it was shorter still.
func TestASessionShorterThanStableAfterIsNotStable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
		s.open(&o)
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept() // after 1 s
		time.Sleep(10*time.Second - 1)
		peer.Fail(errLost)
		d := s.wantDial()
		require.Equal(t, 13*time.Second-1, d.at, "10 s by default, so this wait is the second")
		peer = d.accept()
		time.Sleep(10 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, 24*time.Second-1, s.wantDial().at)
	})
}

func TestDowntimeCountsFromTheLastReadySession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 2 {
				return errLost
			}
			return nil
		}
		var downtimes []time.Duration
		o.Run.Trace = &reconnect.Trace{SessionStart: func(s *reconnect.Session) { downtimes = append(downtimes, s.Downtime) }}
		s.open(&o)
		peer := s.wantDial().accept()
		time.Sleep(time.Hour)
		peer.Fail(errLost)
		s.wantDial().accept() // not ready
		s.wantDial().accept()
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, downtimes)
	})
}

// Promise 12: Trace is told how long a session was up, and for how long of that ready.
func TestSessionDoneTellsHowLongItWasReady(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.OnSession = func(context.Context, *reconnect.Opening) error { time.Sleep(2 * time.Second); return nil }
		var ends []reconnect.SessionEnd
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionEnd) { ends = append(ends, e) }}
		s.open(&o)
		for _, ready := range []time.Duration{9 * time.Second, 10 * time.Second} {
			peer := s.wantDial().accept()
			time.Sleep(2*time.Second + ready)
			peer.Fail(errLost)
			synctest.Wait()
		}
		require.Len(t, ends, 2)
		for i, e := range ends {
			require.ErrorIs(t, e.Cause, errLost)
			ends[i].Cause = nil
		}
		require.Equal(t, []reconnect.SessionEnd{
			{N: 1, Uptime: 11 * time.Second, Ready: 9 * time.Second},
			{N: 2, Uptime: 12 * time.Second, Ready: 10 * time.Second, Stable: true},
		}, ends)
	})
}

// Promise 3: the count of tries starts again after a stable session, and only then.
func TestTriesAreCountedFromTheLastStableSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		var tries []int
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.Wait) { tries = append(tries, w.Try) }}
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().accept().Fail(errLost)
		synctest.Wait()
		require.Equal(t, 2, c.Status().Try)
		peer := s.wantDial().accept()
		time.Sleep(time.Minute)
		peer.Fail(errLost)
		s.wantDial().refuse(errLost)
		s.wantDial()
		require.Equal(t, []int{1, 2, 0, 1}, tries)
	})
}

// since is a policy that notes for how long things have been down.
type since struct{ elapsed *[]time.Duration }

func (p since) Next(a backoff.Attempt, _ *rand.Rand) (backoff.Step, bool) {
	*p.elapsed = append(*p.elapsed, a.Elapsed)
	return backoff.Step{Wait: time.Second}, true
}

func TestThePolicyIsToldHowLongItHasBeenDown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var elapsed []time.Duration
		o := run(since{&elapsed})
		s.open(&o)
		d := s.wantDial()
		time.Sleep(3 * time.Second)
		d.refuse(errLost)
		peer := s.wantDial().accept()
		time.Sleep(time.Minute)
		peer.Fail(errLost)
		s.wantDial().refuse(errLost)
		require.Equal(t, []time.Duration{3 * time.Second, 0, time.Second}, elapsed)
	})
}

func TestReadyCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ready := 0
		var end reconnect.SessionEnd
		_ = reconnect.Run(ctx, func(context.Context) (*pipe, error) { return &pipe{}, nil },
			func(_ context.Context, _ *pipe, s *reconnect.Session) error {
				s.Ready()
				time.Sleep(time.Second)
				s.Ready()
				cancel()
				return nil
			}, &reconnect.RunOptions{Trace: &reconnect.Trace{
				SessionReady: func(*reconnect.Session) { ready++ },
				SessionDone:  func(e reconnect.SessionEnd) { end = e },
			}})
		require.Equal(t, 1, ready)
		require.Equal(t, time.Second, end.Ready)
	})
}

// Promise 1, for a Run over any kind of connection.
func TestRunClosesAConnectionBeforeTheNextDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := &pipe{}
		err := reconnect.Run(t.Context(), func(context.Context) (*pipe, error) {
			if last.closed {
				return nil, backoff.Permanent(errLost)
			}
			return last, nil
		}, func(context.Context, *pipe, *reconnect.Session) error { return errors.New("over") },
			&reconnect.RunOptions{Policy: backoff.Limit(every(0), 3, 0)})
		require.ErrorIs(t, err, errLost)
		require.NotErrorIs(t, err, backoff.ErrGaveUp)
	})
}

// Promise 11: the close under serve is over as well when Run returns.
func TestRunWaitsForTheCloseThatItsContextStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := &pipe{takes: time.Second}
		start := time.Now()
		_ = reconnect.Run(ctx, func(context.Context) (*pipe, error) { return p, nil },
			func(ctx context.Context, _ *pipe, _ *reconnect.Session) error {
				<-ctx.Done()
				synctest.Wait() // the close has begun
				return nil
			}, nil)
		require.Zero(t, p.closing)
		require.Equal(t, 3*time.Second, time.Since(start), "one close after the other")
	})
}

// Promise 12.
func TestEachTryIsConnectingAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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

// The cause of a loss is the first one, not what followed from it.
func TestTheFirstCauseOfALossIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		busy := make(chan struct{})
		causes := make(chan error, 1)
		o.OnMessage = func(reconnect.Message) { <-busy }
		o.OnSeam = func(s *reconnect.Seam) { causes <- s.Cause }
		c := s.open(&o)
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		c.Redial(1, errLost)
		c.Redial(1, errors.New("another"))
		close(busy)
		require.Equal(t, errLost, <-causes)
	})
}
