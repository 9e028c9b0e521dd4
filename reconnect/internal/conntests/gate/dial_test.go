package gate_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 10: a dial that never ends is given up after the two limits together.
func TestADialHasALimit(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		_, d := s.Down(&o)
		<-d.Ctx.Done()
		require.Equal(t, backoff.DefaultConnect+backoff.DefaultHandshake, s.Now())
		require.ErrorIs(t, d.Ctx.Err(), context.DeadlineExceeded)
	})
}

// Most dialers say only that they were canceled.
func TestADialThatItsLimitHasEndedSaysSo(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, d := s.Down(&o)
		d.Answer <- func() (conn.Conn, error) {
			<-d.Ctx.Done()
			return nil, fmt.Errorf("dial tcp: %w", context.Canceled)
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
		require.Equal(t, backoff.ClassOverload, c.Status().Verdict)
	})
}

// A dialer with a method DialTimeout sets the limit of one dial.
func TestTheDialerSetsTheTimeout(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Dialer = limitedDialer{s, 7 * time.Minute}
		_, d := s.Down(nil)
		<-d.Ctx.Done()
		require.Equal(t, 7*time.Minute, s.Now())
	})
}

func TestADialTimeoutOfNothingIsTheDefault(t *testing.T) {
	for _, limit := range []time.Duration{0, -1} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Dialer = limitedDialer{s, limit}
			o := scene.WithPolicy(scene.Every(time.Hour))
			_, d := s.Down(&o)
			<-d.Ctx.Done()
			require.Equal(t, backoff.DefaultConnect+backoff.DefaultHandshake, s.Now())
		})
	}
}

// limitedDialer is a dialer that gives each dial so much time.
type limitedDialer struct {
	*scene.Scene
	limit time.Duration
}

func (d limitedDialer) DialTimeout(backoff.Attempt) time.Duration { return d.limit }

func TestLimitsThatCannotBeAddedUpAreNoLimit(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(limitedPolicy{math.MaxInt64, math.MaxInt64})
		var limits []time.Duration
		o.Run.Trace = &reconnect.Trace{DialStart: func(d reconnect.DialStart) { limits = append(limits, d.Limit) }}
		_, first := s.Down(&o)
		limits = nil
		first.Refuse(scene.ErrLost)
		d := s.WantDial()
		require.Equal(t, time.Duration(math.MaxInt64), limits[0])
		require.NoError(t, d.Ctx.Err())
		d.Accept()
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
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		_, d := s.Down(&o)
		limit := 15 * time.Second
		if s.Session == 1 {
			limit = backoff.DefaultConnect + backoff.DefaultHandshake
		}
		deadline, ok := d.Ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, s.Start().Add(limit), deadline)
		d.Connected()
		_, ok = d.Ctx.Deadline()
		require.False(t, ok)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, d.Ctx.Err())
	})
}

// A dial that brings a connection too late counts as a failure.
func TestALateDialIsAFailure(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Minute))
		c, d := s.Down(&o)
		before := c.Stats()
		for range 10 {
			d.Late(2*time.Minute, conntest.NewFake(nil))
			d = s.WantDial()
		}
		require.Equal(t, before.Dials+10, c.Stats().Dials)
		require.Equal(t, before.Failures+10, c.Stats().Failures)
	})
}

// Promise 10: a dial that succeeds after its time is over has failed, and its connection is
// closed.
func TestADialThatIsLateIsClosed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, d := s.Down(&o)
		peer := conntest.NewFake(nil)
		d.Late(10*time.Minute, peer)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.True(t, peer.Closed())
		require.ErrorIs(t, c.Status().Err, context.DeadlineExceeded)
	})
}

// Promises 1 and 11.
func TestAConnectionThatComesAfterCloseIsClosed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var o reconnect.Options
		overdue := make(chan string, 1)
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) { what := o.What; overdue <- what }}
		c, d := s.Down(&o)
		peer := conntest.NewFake(nil)
		d.Late(8*time.Second, peer)
		scene.CloseAndWait(c)
		require.Equal(t, 8*time.Second, s.Now(), "it is waited for")
		require.Equal(t, "dial", <-overdue)
		require.True(t, peer.Closed())
	})
}

// A connection that comes while the Conn is being closed is closed.
func TestAConnectionThatComesAtTheEndIsClosed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var c atomic.Pointer[reconnect.Conn]
		o := scene.WithPolicy(scene.Hanging{})
		o.Run.Trace = &reconnect.Trace{DialDone: func(reconnect.DialDone) {
			if c := c.Load(); c != nil {
				c.Close()
			}
		}}
		opened, d := s.Down(&o)
		c.Store(opened)
		peer := d.Accept()
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
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, d := s.Down(&o)
		d.Answer <- func() (conn.Conn, error) { runtime.Goexit(); return nil, nil }
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorContains(t, c.Status().Err, "dial: the function did not return")
		d = s.WantDial()
		require.Equal(t, time.Second, d.At)
		d.Accept()
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// A hook that ends its goroutine leaves no connection and no place at the gate taken.
func TestAHookThatDoesNotReturnLeavesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, ended := &scene.Gate{}, &scene.RunConn{}, make(chan struct{})
		go func() {
			defer close(ended)
			reconnect.Run(t.Context(), func(context.Context) (*scene.RunConn, error) { return c, nil },
				func(context.Context, *scene.RunConn, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Gate: g, Host: "h", Trace: &reconnect.Trace{DialDone: func(reconnect.DialDone) { runtime.Goexit() }}})
		}()
		<-ended
		require.True(t, c.Closed)
		require.Equal(t, []string{"acquire h", "done stop"}, g.All())
	})
}

// A hook that panics while a dial has a place at the gate gives the place back.
func TestAHookThatPanicsGivesThePlaceAtTheGateBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &scene.Gate{}
		require.Panics(t, func() {
			reconnect.Run(t.Context(), func(context.Context) (*scene.RunConn, error) { return &scene.RunConn{}, nil },
				func(context.Context, *scene.RunConn, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Gate: g, Host: "h", Trace: &reconnect.Trace{DialStart: func(reconnect.DialStart) { panic("x") }}})
		})
		require.Equal(t, []string{"acquire h", "done stop"}, g.All())
	})
}

// exitingDialer is a dialer whose DialTimeout ends its goroutine if exits is true.
type exitingDialer struct {
	*scene.Scene
	exits *atomic.Bool
}

func (d exitingDialer) DialTimeout(backoff.Attempt) time.Duration {
	if d.exits.Load() {
		runtime.Goexit()
	}
	return 0
}

func TestADialTimeoutThatDoesNotReturnEndsTheConn(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		d := exitingDialer{s, new(atomic.Bool)}
		s.Dialer = d
		c, first := s.Down(nil)
		d.exits.Store(true)
		first.Refuse(scene.ErrLost)
		<-c.Done()
		require.ErrorIs(t, c.Err(), net.ErrClosed)
	})
}

// uncomparable is an error of a type that has no ==.
type uncomparable []string

func (e uncomparable) Error() string { return strings.Join(e, ", ") }

func TestAnErrorNeedNotBeComparable(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Hanging{})
		c, d := s.Down(&o)
		d.Refuse(uncomparable{"no", "way"})
		require.EqualError(t, c.Status().Err, "no, way")
	})
}

// A function of the user that takes long is no reason to dial later.
func TestWaitAfterADialCountsFromItsFailure(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		classify := backoff.Classify
		o := scene.WithPolicy(scene.Every(10 * time.Second))
		o.Run.Classify = func(err error) backoff.Verdict { return classify(err) }
		c, d := s.Down(&o)
		classify = func(error) backoff.Verdict {
			time.Sleep(3 * time.Second)
			return backoff.Verdict{RetryAfter: 5 * time.Second}
		}
		d.Refuse(scene.ErrLost)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 12*time.Second, time.Until(c.Status().Next))
		require.Equal(t, 15*time.Second, s.WantDial().At)
	})
}

func TestWaitAfterASessionCountsFromItsEnd(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		classify := backoff.Classify
		o := scene.WithPolicy(scene.Every(10 * time.Second))
		o.Run.Classify = func(err error) backoff.Verdict { return classify(err) }
		c, peer := s.Ready(&o)
		began := s.Now()
		classify = func(error) backoff.Verdict {
			time.Sleep(3 * time.Second)
			return backoff.Verdict{RetryAfter: 5 * time.Second}
		}
		peer.Fail(scene.ErrLost)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 12*time.Second, time.Until(c.Status().Next))
		require.Equal(t, began+15*time.Second, s.WantDial().At)
	})
}

// Overdue is called in the goroutine that waits for the function, and ends it.
func TestDoneWaitsForAFunctionAlthoughOverdueDoesNotReturn(t *testing.T) {
	exit := &reconnect.Trace{Overdue: func(reconnect.Overdue) { runtime.Goexit() }}
	for _, dials := range []bool{true, false} {
		t.Run(fmt.Sprint("a dial: ", dials), func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				peer, over := conntest.NewFake(nil), false
				takesLong := func() {
					time.Sleep(time.Hour)
					over = true
				}
				o := &reconnect.Options{Run: reconnect.RunOptions{Trace: exit}}
				o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
					if op.Session == s.Session {
						takesLong()
					}
					return nil
				}
				c, d := s.Down(o)
				d.Answer <- func() (conn.Conn, error) {
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
