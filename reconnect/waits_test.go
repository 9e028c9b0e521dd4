package reconnect_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 3: a server that accepts and drops sees growing waits.
func TestWaitsGrowWhenSessionsAreDroppedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
		s.open(&o)
		for _, at := range []time.Duration{0, 1, 3, 7, 15} {
			d := s.wantDial()
			require.Equal(t, at*time.Second, d.at)
			d.accept().Fail(errLost)
		}
	})
}

// Promise 3.
func TestWaitsStartAgainAfterAStableSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
		o.Run.StableAfter = 10 * time.Second
		s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial().refuse(errLost) // after 1 s
		d := s.wantDial()            // after 2 s
		require.Equal(t, 3, d.try.Number)
		peer := d.accept()
		time.Sleep(10 * time.Second)
		peer.Fail(errLost)
		d = s.wantDial()
		require.Equal(t, 14*time.Second, d.at, "the first wait again")
		require.Equal(t, 1, d.try.Number)
	})
}

// Promise 3: the wait before the session is a threshold as well.
func TestASessionShorterThanItsWaitIsNotStable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
		o.Run.StableAfter = time.Second
		s.open(&o)
		for range 5 {
			s.wantDial().refuse(errLost)
		}
		d := s.wantDial() // after 1+2+4+8+16 s
		require.Equal(t, 31*time.Second, d.at)
		peer := d.accept()
		time.Sleep(5 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, (31+5+32)*time.Second, s.wantDial().at)
	})
}

// Promises 3 and 4: a connection that is up for long without being ready
// resets nothing.
func TestOnlyReadinessCountsAsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var dials []time.Duration
		err := reconnect.Run(t.Context(), func(context.Context) (io.Closer, error) {
			dials = append(dials, time.Since(start))
			if len(dials) == 4 {
				return nil, backoff.Permanent(io.ErrNoProgress)
			}
			return io.NopCloser(nil), nil
		}, func(context.Context, io.Closer, *reconnect.Session) error {
			time.Sleep(time.Hour)
			return nil
		}, &reconnect.RunOptions{Policy: double{}})
		require.ErrorIs(t, err, io.ErrNoProgress)
		require.Equal(t, []time.Duration{0, time.Hour + time.Second, 2*time.Hour + 3*time.Second, 3*time.Hour + 7*time.Second}, dials)
	})
}

// Promise 2: with the default policy ten thousand clients that are dropped at one
// instant come back spread out. (Over real WebSockets: websocket_test.go.)
func TestTenThousandClientsDoNotComeBackInStep(t *testing.T) {
	const clients = 10_000
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		peers := make(chan *conntest.Fake, clients)
		var times []time.Time
		noted := make(chan time.Time, clients) // one for each client
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			fake := conntest.NewFake(nil)
			if time.Since(start) > 0 {
				noted <- time.Now()
			}
			peers <- fake
			return fake, nil
		})
		for range clients {
			c, err := reconnect.New(dial, nil)
			require.NoError(t, err)
			defer quit(c)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		for range clients {
			(<-peers).Fail(errLost)
		}
		for range clients {
			times = append(times, <-noted)
		}
		require.Less(t, conntest.Peak(times, 100*time.Millisecond), clients/10)
	})
}

// Promise 9: Retry-After comes first, and the jittered wait is added.
func TestRetryAfterIsAddedToTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		s.wantDial().refuse(backoff.RetryAfter(errLost, 7*time.Second))
		require.Equal(t, s.start.Add(8*time.Second), c.Status().Next)
		require.Equal(t, 8*time.Second, s.wantDial().at)
	})
}

// Promise 9.
func TestRetryAfterIsClampedAtAnHour(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		o.Run.Classify = func(error) backoff.Verdict { return backoff.Verdict{RetryAfter: 1 << 60} }
		s.open(&o)
		s.wantDial().refuse(errLost)
		require.Equal(t, time.Hour, s.wantDial().at)
	})
}

func TestKickCutsTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		var done reconnect.WaitDone
		o.Run.Trace = &reconnect.Trace{WaitDone: func(w reconnect.WaitDone) { done = w }}
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		time.Sleep(time.Second)
		c.Kick()
		require.Equal(t, time.Second, s.wantDial().at)
		require.True(t, done.Kicked)
	})
}

// A kick counts from the moment that the connection is seen to be lost.
func TestKickRightAfterTheLossIsNotMissed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		var c *reconnect.Conn
		o.OnSeam = func(context.Context, *reconnect.Seam) { c.Kick() }
		c = s.open(&o)
		s.wantDial().accept().Fail(errLost)
		require.Zero(t, s.wantDial().at)
	})
}

// A kick while there is no wait is not kept for the next.
func TestKickWithoutAWaitDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		c := s.open(&o)
		d := s.wantDial()
		c.Kick()
		peer := d.accept()
		c.Kick()
		peer.Fail(errLost)
		require.Equal(t, time.Hour, s.wantDial().at)
	})
}

// The dialer knows how long one dial may take.
func TestTheDialerSetsTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, err := reconnect.New(slowDialer{s}, nil)
		require.NoError(t, err)
		defer quit(c)
		d := s.wantDial()
		<-d.ctx.Done()
		require.Equal(t, 7*time.Minute, s.now())
	})
}

type slowDialer struct{ *scene }

func (slowDialer) DialTimeout(backoff.Attempt) time.Duration { return 7 * time.Minute }

// Promise 9: a kick does not shorten what a server told us.
func TestKickDoesNotCutRetryAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		s.wantDial().refuse(backoff.RetryAfter(errLost, time.Minute))
		c.Kick()
		require.Equal(t, 61*time.Second, s.wantDial().at)
	})
}

// answered is an error like a dialer's.
type answered int

func (a answered) Error() string   { return "answered" }
func (a answered) StatusCode() int { return int(a) }

// Promise 9.
func TestAVerdictOfStopEndsTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().refuse(answered(410))
		<-c.Done()
		require.ErrorIs(t, c.Err(), net.ErrClosed)
		var end *reconnect.EndError
		require.ErrorAs(t, c.Err(), &end)
		require.Equal(t, answered(410), end.Err)
		_, err := c.Read(t.Context(), nil)
		require.Equal(t, c.Err(), err)
		require.Equal(t, c.Err(), c.Await(t.Context(), reconnect.StateReady))
	})
}

// Promise 9: what a deploy can cause is retried, minutes apart.
func TestAVerdictOfSlowWaitsForMinutes(t *testing.T) {
	for _, status := range []int{401, 403} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.open(nil)
			s.wantDial().refuse(answered(status))
			require.GreaterOrEqual(t, s.wantDial().at, time.Minute)
		})
	}
}

// New credentials are tried at once, and are slow if they are refused again.
func TestStaleCredentialsAreMadeAnewAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := reconnect.Options{OnSession: func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return backoff.Refresh(errLost)
			}
			return nil
		}}
		c := s.open(&o)
		s.wantDial().accept()
		d := s.wantDial()
		require.Less(t, d.at, time.Second)
		require.True(t, d.try.Refresh)
		d.refuse(backoff.Refresh(errLost))
		at := s.now()
		d = s.wantDial()
		require.GreaterOrEqual(t, d.at-at, time.Minute)
		d.accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// What fails on our own machine is no news of the host.
func TestAFailureOfOurOwnMachineSaysNothingToTheGate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		v := &verdicts{}
		o := run(every(time.Second))
		o.Run.Gate, o.Run.Host = v, "h"
		s.open(&o)
		s.wantDial().refuse(os.NewSyscallError("socket", syscall.EMFILE))
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassStop}}, v.list)
		require.Equal(t, time.Second, s.wantDial().at)
	})
}

func TestAPolicyThatGivesUpEndsTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(backoff.Limit(every(time.Second), 2, 0))
		c := s.open(&o)
		for range 3 {
			s.wantDial().refuse(errLost)
		}
		<-c.Done()
		require.ErrorIs(t, c.Err(), backoff.ErrGaveUp)
		require.ErrorIs(t, c.Err(), errLost)
	})
}

// Promise 9: a Classify that says OK of an error is not believed.
func TestAnErrorIsNeverASuccess(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		var classes []backoff.Class
		o.Run.Classify = func(error) backoff.Verdict { return backoff.Verdict{} }
		o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.Wait) { classes = append(classes, w.Verdict.Class) }}
		s.open(&o)
		s.wantDial().refuse(errLost)
		s.wantDial()
		require.Equal(t, []backoff.Class{backoff.ClassRetry}, classes)
	})
}

// Promise 2: random numbers are injected, and then repeat themselves.
func TestEqualSourcesGiveEqualWaits(t *testing.T) {
	at := func() (at time.Duration) {
		inBubble(t, func(t *testing.T, s *scene) {
			o := reconnect.Options{Run: reconnect.RunOptions{Rand: rand.NewPCG(1, 2)}}
			s.open(&o)
			s.wantDial().refuse(errLost)
			at = s.wantDial().at
		})
		return at
	}
	require.Equal(t, at(), at())
}

// Promise 10: a dial that never ends is given up after the two limits together.
func TestADialHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		s.open(&o)
		d := s.wantDial()
		<-d.ctx.Done()
		require.Equal(t, backoff.DefaultConnect+backoff.DefaultHandshake, s.now())
		require.ErrorIs(t, d.ctx.Err(), context.DeadlineExceeded)
	})
}

func TestANilFromServeIsRedialed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var causes []error
		err := reconnect.Run(ctx, func(context.Context) (io.Closer, error) { return io.NopCloser(nil), nil },
			func(_ context.Context, _ io.Closer, s *reconnect.Session) error {
				causes = append(causes, s.Cause)
				if s.Number == 3 {
					cancel(errLost)
				}
				return nil
			}, nil)
		require.ErrorIs(t, err, errLost)
		require.Len(t, causes, 3)
		require.NoError(t, causes[0])
		require.Error(t, errors.Join(causes[1:]...))
	})
}
