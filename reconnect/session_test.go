package reconnect_test

import (
	"context"
	"errors"
	"math/rand/v2"
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

// Promise 3: a session that was ready for less than StableAfter is not stable, though
// the wait before it was shorter still. It makes the outage younger by four times the
// time that it was ready.
func TestASessionShorterThanStableAfterIsNotStable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
		s.open(&o)
		for range 6 {
			s.wantDial().refuse(errLost)
		}
		peer := s.wantDial().accept()
		require.Equal(t, 63*time.Second, s.now())
		time.Sleep(10*time.Second - 1)
		peer.Fail(errLost)
		d := s.wantDial()
		require.Equal(t, (63+10+64)*time.Second-1, d.at, "10 s by default, so this wait is the seventh")
		peer = d.accept()
		time.Sleep(64 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, (63+10+64+64+1)*time.Second-1, s.wantDial().at)
	})
}

// A server that is up for longer than it is away is dialed as if it had never failed.
func TestShortSessionsEndAYoungOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(double{})
		s.open(&o)
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept() // after 1 s
		time.Sleep(3 * time.Second)
		peer.Fail(errLost)
		require.Equal(t, 5*time.Second, s.wantDial().at, "the first wait again")
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
			{Session: 1, Uptime: 11 * time.Second, Ready: 9 * time.Second},
			{Session: 2, Uptime: 12 * time.Second, Ready: 10 * time.Second, Stable: true},
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
		require.Equal(t, []int{2, 3, 1, 2}, tries)
	})
}

// since is a policy that notes for how long things have been down.
type since struct{ elapsed *[]time.Duration }

func (p since) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
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
		o.OnMessage = func(context.Context, reconnect.Message) { <-busy }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { causes <- s.Cause }
		c := s.open(&o)
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		c.Redial(1, errLost)
		c.Redial(1, errors.New("another"))
		close(busy)
		require.Equal(t, errLost, <-causes)
	})
}

// Promise 3: the wait before a session counts with what a server asked for.
func TestARetryAfterIsAPartOfTheWaitBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var ends []reconnect.SessionEnd
		o := run(every(time.Second))
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionEnd) { ends = append(ends, e) }}
		s.open(&o)
		s.wantDial().refuse(backoff.RetryAfter(errLost, 10*time.Minute))
		peer := s.wantDial().accept()
		time.Sleep(10 * time.Minute)
		peer.Fail(errLost)
		peer = s.wantDial().accept() // after 1 s
		time.Sleep(10 * time.Second)
		peer.Fail(errLost)
		s.wantDial()
		require.False(t, ends[0].Stable, "ready for 10m after a wait of 10m1s")
		require.True(t, ends[1].Stable)
	})
}

// Ready is for a session that lasts.
func TestReadyAfterTheEndDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []string
		trace := &reconnect.Trace{
			SessionReady: func(*reconnect.Session) { events = append(events, "ready") },
			SessionDone:  func(reconnect.SessionEnd) { events = append(events, "done") },
		}
		var first *reconnect.Session
		serve := func(_ context.Context, _ *pipe, s *reconnect.Session) error {
			if first == nil {
				first = s
				return errLost
			}
			first.Ready()
			return backoff.Permanent(errLost)
		}
		err := reconnect.Run(t.Context(), func(context.Context) (*pipe, error) { return &pipe{}, nil }, serve,
			&reconnect.RunOptions{Trace: trace})
		require.ErrorIs(t, err, errLost)
		require.Equal(t, []string{"done", "done"}, events)
	})
}

// A try that came too late has failed like any other.
func TestALateDialIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Minute))
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			time.Sleep(2 * time.Minute) // whatever ctx says
			return conntest.NewFake(nil), nil
		}), &o)
		require.NoError(t, err)
		defer quit(c)
		time.Sleep(time.Hour)
		require.InDelta(t, c.Stats().Dials, c.Stats().Failures, 1)
		require.NotZero(t, c.Stats().Failures)
	})
}

// Run is in the caller's goroutine: whoever recovers from a panic of serve gets the
// connection closed, the place at the gate back, and no goroutine.
func TestAServeThatDoesNotReturnLeavesNothingBehind(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("bad message") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, c := &gate{}, &pipe{}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { recover() }()
					reconnect.Run(t.Context(), func(context.Context) (*pipe, error) { return c, nil },
						func(context.Context, *pipe, *reconnect.Session) error { leave(); return nil },
						&reconnect.RunOptions{Gate: g, Host: "h"})
				}()
				<-ended
				require.True(t, c.closed)
				require.Equal(t, []string{"acquire h", "done stop"}, g.all())
			})
		})
	}
}

// Also where it was a hook that panicked, with a place at the gate taken.
func TestAHookThatPanicsGivesThePlaceAtTheGateBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		require.Panics(t, func() {
			reconnect.Run(t.Context(), func(context.Context) (*pipe, error) { return &pipe{}, nil },
				func(context.Context, *pipe, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Gate: g, Host: "h", Trace: &reconnect.Trace{DialStart: func(reconnect.DialStart) { panic("x") }}})
		})
		require.Equal(t, []string{"acquire h", "done stop"}, g.all())
	})
}

// A dial that ends its goroutine, as t.FailNow does, has failed.
func TestADialThatDoesNotReturnIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		n := 0
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			if n++; n == 1 {
				runtime.Goexit()
			}
			return conntest.NewFake(nil), nil
		}), &o)
		require.NoError(t, err)
		defer quit(c)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorContains(t, c.Status().Err, "dial: the function did not return")
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		require.Equal(t, time.Second, s.now())
	})
}

// So has an OnSession: the session is not ready.
func TestAnOnSessionThatDoesNotReturnIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.OnSession = func(context.Context, *reconnect.Opening) error { runtime.Goexit(); return nil }
		c := s.open(&o)
		peer := s.wantDial().accept()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorContains(t, c.Status().Err, "OnSession: the function did not return")
		require.True(t, peer.Closed())
		s.wantDial()
	})
}

// A callback that ends the supervisor's goroutine ends the Conn, which says so.
func TestACallbackThatDoesNotReturnEndsTheConn(t *testing.T) {
	push := func(context.Context, reconnect.Message) {}
	for name, set := range map[string]func(*reconnect.Options){
		"OnMessage": func(o *reconnect.Options) {
			o.OnMessage = func(context.Context, reconnect.Message) { runtime.Goexit() }
		},
		"OnSeam": func(o *reconnect.Options) {
			o.OnMessage, o.OnSeam = push, func(context.Context, *reconnect.Seam) { runtime.Goexit() }
		},
		"Keep": func(o *reconnect.Options) {
			o.OnMessage = push
			o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { runtime.Goexit(); return false }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				o, told := sending(reconnect.WhenDownKeep)
				set(o)
				c := s.open(o)
				peer := s.wantDial().accept()
				peer.Hold()
				_, _ = c.Send(out("a")), c.Send(out("b"))
				peer.Deliver(text("m"))
				synctest.Wait()
				peer.Fail(errLost)
				<-c.Done()
				require.ErrorContains(t, c.Err(), "closed: "+name+": the function did not return")
				require.ErrorIs(t, c.Err(), net.ErrClosed)
				require.True(t, peer.Closed())
				require.Equal(t, reconnect.StateClosed, c.State())
				require.Zero(t, c.Stats().Queued)
				for _, r := range told.all() {
					require.NotEqual(t, reconnect.FateWritten, r.Fate)
				}
			})
		})
	}
}

// One that ends the goroutine of a timer ends the session.
func TestATimersCallbackThatDoesNotReturnEndsTheSession(t *testing.T) {
	for name, set := range map[string]func(*reconnect.Options){
		"Liveness.Probe": func(o *reconnect.Options) {
			o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { runtime.Goexit(); return nil }
		},
		"Stall.Expected": func(o *reconnect.Options) {
			o.Stall = reconnect.Stall{Limit: 80 * time.Second, Expected: func(time.Time) bool { runtime.Goexit(); return true }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := run(every(time.Hour))
				set(&o)
				c := s.open(&o)
				s.wantDial().accept()
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				require.ErrorContains(t, c.Status().Err, name+": the function did not return")
			})
		})
	}
}

// Outbox.OnReceipt goes on with the next receipt.
func TestADoneThatDoesNotReturnIsCalledForTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var told notes
		o := run(every(time.Second))
		o.Outbox.OnReceipt = func(_ context.Context, r reconnect.Receipt) {
			told.add(string(r.Out.Data))
			runtime.Goexit()
		}
		c := s.open(&o)
		s.wantDial().accept()
		queue(t, c, "a", "b", "c")
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c"}, told.all())
	})
}

// What is said of another session harms nobody.
func TestARedialOfAnOlderSessionDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		c := s.open(&o)
		s.wantDial().accept().Fail(errLost)
		s.wantDial().accept()
		c.Redial(1, errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		s.wantNoDial()
	})
}

// The peer is told, with the code of the cause if a close frame may carry it (RFC
// 6455, section 7.4).
func TestRedialIsPolite(t *testing.T) {
	code := func(n int) error { return &conn.CloseError{Code: n} }
	for _, test := range []struct {
		cause error
		code  int
	}{
		{errLost, 1000}, {code(4999), 4999}, {code(3000), 3000}, {code(1014), 1014}, {code(1007), 1007}, {code(1003), 1003}, {code(1001), 1001},
		{code(-1), 1000}, {code(999), 1000}, {code(1004), 1000}, {code(1005), 1000}, {code(1006), 1000}, {code(1015), 1000}, {code(2999), 1000}, {code(5000), 1000},
	} {
		inBubble(t, func(t *testing.T, s *scene) {
			o := run(every(time.Second))
			c := s.open(&o)
			peer := s.wantDial().accept()
			c.Redial(1, test.cause)
			require.Equal(t, test.cause, wantSeam(t, c).Cause)
			got, _, polite := peer.ClosedWith()
			require.True(t, polite)
			require.Equal(t, test.code, got, "%v", test.cause)
			require.Equal(t, time.Second, s.wantDial().at)
		})
	}
}

func TestRedialWithoutATimeoutCuts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.CloseTimeout = -1
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Mute()
		c.Redial(1, errLost)
		require.True(t, peer.Closed())
		_, _, polite := peer.ClosedWith()
		require.False(t, polite)
		require.Equal(t, errLost, wantSeam(t, c).Cause)
		require.Equal(t, time.Second, s.wantDial().at)
	})
}

// A peer that does not answer is waited for, within CloseTimeout; nothing is read or
// written meanwhile, and Close does not wait for it.
func TestAPoliteRedialHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Mute()
		c.Redial(1, errLost)
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Write(t.Context(), text("x")), reconnect.ErrNotReady)
		d := s.wantDial()
		require.Equal(t, 6*time.Second, d.at)
		peer = d.accept()
		peer.Mute()
		c.Redial(2, errLost)
		synctest.Wait()
		quit(c)
		require.Equal(t, 6*time.Second, s.now())
	})
}
