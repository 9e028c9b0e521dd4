package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 10: a dial that never ends is given up after the two limits together.
func TestADialHasALimit(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		_, d := s.down(&o)
		<-d.ctx.Done()
		require.Equal(t, backoff.DefaultConnect+backoff.DefaultHandshake, s.now())
		require.ErrorIs(t, d.ctx.Err(), context.DeadlineExceeded)
	})
}

// Most dialers say only that they were canceled.
func TestADialThatItsLimitHasEndedSaysSo(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		c, d := s.down(&o)
		d.answer <- func() (conn.Conn, error) {
			<-d.ctx.Done()
			return nil, fmt.Errorf("dial tcp: %w", context.Canceled)
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
	})
}

// A dialer with a method DialTimeout sets the limit of one dial.
func TestTheDialerSetsTheTimeout(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.dialer = limitedDialer{s, 7 * time.Minute}
		_, d := s.down(nil)
		<-d.ctx.Done()
		require.Equal(t, 7*time.Minute, s.now())
	})
}

func TestADialTimeoutOfNothingIsTheDefault(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.dialer = limitedDialer{s, limit}
			o := withPolicy(every(time.Hour))
			_, d := s.down(&o)
			<-d.ctx.Done()
			require.Equal(t, backoff.DefaultConnect+backoff.DefaultHandshake, s.now())
		})
	}
}

// limitedDialer is a dialer that gives each dial so much time.
type limitedDialer struct {
	*scene
	limit time.Duration
}

func (d limitedDialer) DialTimeout(backoff.Attempt) time.Duration { return d.limit }

func TestLimitsThatCannotBeAddedUpAreNoLimit(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(limitedPolicy{math.MaxInt64, math.MaxInt64})
		var limits []time.Duration
		o.Run.Trace = &reconnect.Trace{DialStart: func(d reconnect.DialStart) { limits = append(limits, d.Limit) }}
		_, first := s.down(&o)
		limits = nil
		first.refuse(errLost)
		d := s.wantDial()
		require.Equal(t, time.Duration(math.MaxInt64), limits[0])
		require.NoError(t, d.ctx.Err())
		d.accept()
	})
}

// limitedPolicy is a policy with these limits on connecting and on the handshake.
type limitedPolicy [2]time.Duration

func (l limitedPolicy) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second, Connect: l[0], Handshake: l[1]}, true
}

// The limits of a dial hold until it is connected. After that the rule for handshakes that hang
// decides.
func TestADialThatIsConnectedHasNoDeadline(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		_, d := s.down(&o)
		limit := 15 * time.Second
		if s.session == 1 {
			limit = backoff.DefaultConnect + backoff.DefaultHandshake
		}
		deadline, ok := d.ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, s.start().Add(limit), deadline)
		d.connected()
		_, ok = d.ctx.Deadline()
		require.False(t, ok)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, d.ctx.Err())
	})
}

// A dial that brings a connection too late counts as a failure.
func TestALateDialIsAFailure(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Minute))
		c, d := s.down(&o)
		before := c.Stats()
		for range 10 {
			d.late(2*time.Minute, conntest.NewFake(nil))
			d = s.wantDial()
		}
		require.Equal(t, before.Dials+10, c.Stats().Dials)
		require.Equal(t, before.Failures+10, c.Stats().Failures)
	})
}

// Promise 10: a dial that succeeds after its time is over has failed, and its connection is
// closed.
func TestADialThatIsLateIsClosed(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		c, d := s.down(&o)
		peer := conntest.NewFake(nil)
		d.late(10*time.Minute, peer)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.True(t, peer.Closed())
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
	})
}

// Promises 1 and 11.
func TestAConnectionThatComesAfterCloseIsClosed(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		var o reconnect.Options
		overdue := make(chan string, 1)
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; overdue <- what }}
		c, d := s.down(&o)
		peer := conntest.NewFake(nil)
		d.late(8*time.Second, peer)
		closeAndWait(c)
		require.Equal(t, 8*time.Second, s.now(), "it is waited for")
		require.Equal(t, "dial", <-overdue)
		require.True(t, peer.Closed())
	})
}

// A connection that comes while the Conn is being closed is closed.
func TestAConnectionThatComesAtTheEndIsClosed(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		var c atomic.Pointer[reconnect.Conn]
		o := withPolicy(hanging{})
		o.Run.Trace = &reconnect.Trace{DialDone: func(reconnect.DialDone) {
			if c := c.Load(); c != nil {
				c.Close()
			}
		}}
		opened, d := s.down(&o)
		c.Store(opened)
		peer := d.accept()
		<-c.Load().Done()
		require.True(t, peer.Closed())
	})
}

// Promise 1, for a Run over any kind of connection.
func TestRunClosesWhatALateDialBringsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, w := io.Pipe()
		err := reconnect.Run(ctx, func(context.Context) (*io.PipeReader, error) {
			time.Sleep(2 * time.Second)
			return r, nil
		}, func(context.Context, *io.PipeReader, *reconnect.Session) error {
			t.Error("serve was called with a connection that came too late")
			return nil
		}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = w.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

// A dial that ends its goroutine, as t.FailNow does, has failed.
func TestADialThatDoesNotReturnIsAFailure(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c, d := s.down(&o)
		d.answer <- func() (conn.Conn, error) { runtime.Goexit(); return nil, nil }
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorContains(t, c.Status().Err, "dial: the function did not return")
		d = s.wantDial()
		require.Equal(t, time.Second, d.at)
		d.accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// A hook that ends its goroutine leaves no connection and no place at the gate taken.
func TestAHookThatDoesNotReturnLeavesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, ended := &gate{}, &runConn{}, make(chan struct{})
		go func() {
			defer close(ended)
			reconnect.Run(t.Context(), func(context.Context) (*runConn, error) { return c, nil },
				func(context.Context, *runConn, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Gate: g, Host: "h", Trace: &reconnect.Trace{DialDone: func(reconnect.DialDone) { runtime.Goexit() }}})
		}()
		<-ended
		require.True(t, c.closed)
		require.Equal(t, []string{"acquire h", "done stop"}, g.all())
	})
}

// A hook that panics while a dial has a place at the gate gives the place back.
func TestAHookThatPanicsGivesThePlaceAtTheGateBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		require.Panics(t, func() {
			reconnect.Run(t.Context(), func(context.Context) (*runConn, error) { return &runConn{}, nil },
				func(context.Context, *runConn, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Gate: g, Host: "h", Trace: &reconnect.Trace{DialStart: func(reconnect.DialStart) { panic("x") }}})
		})
		require.Equal(t, []string{"acquire h", "done stop"}, g.all())
	})
}

// exitingDialer is a dialer whose DialTimeout ends its goroutine if exits is true.
type exitingDialer struct {
	*scene
	exits *atomic.Bool
}

func (d exitingDialer) DialTimeout(backoff.Attempt) time.Duration {
	if d.exits.Load() {
		runtime.Goexit()
	}
	return 0
}

func TestADialTimeoutThatDoesNotReturnEndsTheConn(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		d := exitingDialer{s, new(atomic.Bool)}
		s.dialer = d
		c, first := s.down(nil)
		d.exits.Store(true)
		first.refuse(errLost)
		<-c.Done()
		require.ErrorIs(t, c.Err(), net.ErrClosed)
	})
}

// uncomparable is an error of a type that has no ==.
type uncomparable []string

func (e uncomparable) Error() string { return strings.Join(e, ", ") }

func TestAnErrorNeedNotBeComparable(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(hanging{})
		c, d := s.down(&o)
		d.refuse(uncomparable{"no", "way"})
		require.EqualError(t, c.Status().Err, "no, way")
	})
}

// A function of the user that takes long is no reason to dial later.
func TestWaitAfterADialCountsFromItsFailure(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		classify := backoff.Classify
		o := withPolicy(every(10 * time.Second))
		o.Run.Classify = func(err error) backoff.Verdict { return classify(err) }
		c, d := s.down(&o)
		classify = func(error) backoff.Verdict {
			time.Sleep(3 * time.Second)
			return backoff.Verdict{RetryAfter: 5 * time.Second}
		}
		d.refuse(errLost)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 12*time.Second, time.Until(c.Status().Next))
		require.Equal(t, 15*time.Second, s.wantDial().at)
	})
}

func TestWaitAfterASessionCountsFromItsEnd(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		classify := backoff.Classify
		o := withPolicy(every(10 * time.Second))
		o.Run.Classify = func(err error) backoff.Verdict { return classify(err) }
		c, peer := s.ready(&o)
		began := s.now()
		classify = func(error) backoff.Verdict {
			time.Sleep(3 * time.Second)
			return backoff.Verdict{RetryAfter: 5 * time.Second}
		}
		peer.Fail(errLost)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 12*time.Second, time.Until(c.Status().Next))
		require.Equal(t, began+15*time.Second, s.wantDial().at)
	})
}

// Overdue is called in the goroutine that waits for the function, and ends it.
func TestDoneWaitsForAFunctionAlthoughOverdueDoesNotReturn(t *testing.T) {
	exit := &reconnect.Trace{Overdue: func(reconnect.Overdue) { runtime.Goexit() }}
	for _, dials := range []bool{true, false} {
		t.Run(fmt.Sprint("a dial: ", dials), func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				peer, over := conntest.NewFake(nil), false
				takesLong := func() {
					time.Sleep(time.Hour)
					over = true
				}
				o := &reconnect.Options{Run: reconnect.RunOptions{Trace: exit}}
				o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
					if op.Session == s.session {
						takesLong()
					}
					return nil
				}
				c, d := s.down(o)
				d.answer <- func() (conn.Conn, error) {
					if dials {
						takesLong()
					}
					return peer.Conn(), nil
				}
				time.Sleep(time.Second)
				c.Close()
				<-c.Done()
				require.True(t, over)
				require.True(t, peer.Closed())
			})
		})
	}
}
