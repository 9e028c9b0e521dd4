package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of run.go that are about the Gate: when it is passed, and which verdict it gets.

// Each dial passes the gate, the first one too.
func TestEachDialPassesTheGateOnce(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g := &scene.Gate{}
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Gate, o.Run.Host = g, "h"
		fail := errors.New("not today")
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == s.Session {
				return fail
			}
			return nil
		}
		_, d := s.Down(&o)
		require.Equal(t, "acquire h", g.All()[len(g.All())-1], "the first dial passes it too")
		before := len(g.All()) - 1
		d.Refuse(scene.Answered(503))
		s.WantDial().Accept() // OnSession fails, and the gate gets its verdict
		s.WantDial().Accept()
		ok := backoff.ClassOK.String()
		require.Equal(t, []string{
			"acquire h", "done " + backoff.ClassOverload.String(),
			"acquire h", "done " + ok, "acquire h", "done " + ok,
		}, g.All()[before:])
	})
}

// Promise 12: at the gate a Conn is connecting, not waiting any more.
func TestAtTheGateTheStateIsConnecting(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Gate, o.Run.Host = &scene.Gate{}, "h"
		c, d := s.Down(&o)
		d.Refuse(scene.ErrLost)
		time.Sleep(1500 * time.Millisecond)
		s.WantNoDial()
		require.Equal(t, reconnect.StateConnecting, c.State())
	})
}

// The Conn at the gate has not failed, but another has: so it is that Conn's error that says what is wrong.
func TestAConnAtTheGateOfAHostThatIsDownKnowsWhy(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1, Probe: scene.Every(10 * time.Second)})
		require.NoError(t, err)
		o := scene.WithPolicy(scene.Every(time.Minute))
		o.Run.Gate, o.Run.Host, o.Run.Name = g, "h", "first"
		first, d := s.Down(&o)
		o.Run.Name = "second"
		second := s.Open(&o)
		time.Sleep(time.Second)
		require.True(t, second.Status().AtGate)
		require.Nil(t, second.Status().Outlook, "the host is up")
		d.Refuse(scene.ErrLost)
		require.Nil(t, first.Status().Outlook, "it does not wait at the gate")
		require.Equal(t, &budget.Outlook{
			Err: scene.ErrLost, Next: time.Now().Add(10 * time.Second), By: "second", Waiting: 1,
		}, second.Status().Outlook)

		o.Run.Name = "third"
		third := s.Open(&o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = third.AwaitReady(ctx)
		require.ErrorIs(t, err, scene.ErrLost)
		require.EqualError(t, err, "not ready but connecting at the gate (the next dial begins in 9s): "+
			"context deadline exceeded: lost")
		s.WantDial()
		require.Equal(t, &budget.Outlook{Err: scene.ErrLost, By: "second", Waiting: 1}, third.Status().Outlook)
		require.Nil(t, second.Status().Outlook, "it probes")
	})
}

// wrappedGate counts what passes it.
type wrappedGate struct {
	*budget.Gate
	n int
}

func (w *wrappedGate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	w.n++
	return w.Gate.Acquire(ctx, host)
}

// A gate of the program's own that embeds a budget.Gate is not passed by.
func TestAGateAroundABudgetGateIsAsked(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g, err := budget.NewGate(nil)
		require.NoError(t, err)
		w := &wrappedGate{Gate: g}
		o := scene.WithPolicy(scene.Every(time.Minute))
		o.Run.Gate, o.Run.Host = w, "h"
		c, d := s.Down(&o)
		d.Accept()
		require.Equal(t, c.Stats().Dials, uint64(w.n))
	})
}

// The try has failed, but Stats counts no dial and no failure.
func TestAGateThatRefusesIsAFailedTry(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var refusal error
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Gate, o.Run.Host = scene.RefusingGate(func() error { return refusal }), "h"
		c, d := s.Down(&o)
		refusal = errors.New("full")
		d.Refuse(scene.ErrLost)
		before := c.Stats()
		time.Sleep(time.Hour)
		s.WantNoDial()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.EqualError(t, c.Status().Err, "gate h: full")
		require.ErrorIs(t, c.Status().Err, refusal)
		require.Equal(t, before, c.Stats())
	})
}

// Promise 11: Close does not wait for the gate.
func TestCloseLeavesTheGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		o.Run.Gate, o.Run.Host = &scene.Gate{}, "h"
		c, d := s.Down(&o)
		d.Refuse(scene.ErrLost)
		require.True(t, c.Status().AtGate)
		scene.CloseAndWait(c)
		require.Equal(t, time.Duration(0), s.Now())
	})
}

func TestTheLossOfAReadySessionDoesNotReachTheGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g := &scene.Gate{}
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Gate, o.Run.Host = g, "h"
		_, peer := s.Ready(&o)
		require.Contains(t, g.All(), "done "+backoff.ClassOK.String())
		before := len(g.All())
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.Len(t, g.All(), before)
	})
}

// A dial that was cancelled says nothing about the host.
func TestTheGateGetsClassStopForADialThatWasCancelled(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g := &scene.Gate{}
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Gate, o.Run.Host = g, "h"
		c, _ := s.Down(&o)
		before := len(g.All())
		scene.CloseAndWait(c)
		require.Equal(t, []string{"done " + backoff.ClassStop.String()}, g.All()[before:])
	})
}

// Promises 9 and 10: the time to wait that the gate gets is clamped as well.
func TestTheGateGetsAClampedRetryAfter(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		v := &scene.VerdictGate{}
		classify := backoff.Classify
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Gate, o.Run.Host = v, "h"
		o.Run.Classify = func(err error) backoff.Verdict { return classify(err) }
		_, d := s.Down(&o)
		v.List = nil
		classify = func(error) backoff.Verdict {
			return backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 1 << 60}
		}
		d.Refuse(scene.ErrLost)
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOverload, RetryAfter: time.Hour}}, v.List)
	})
}

// A Retry-After in the answer to a dial holds for all connections to the host.
func TestARefusedDialReportsItsRetryAfterToTheGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		v := &scene.VerdictGate{}
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Gate, o.Run.Host = v, "h"
		_, d := s.Down(&o)
		v.List = nil
		d.Refuse(backoff.RetryAfter(scene.Answered(503), time.Minute))
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOverload, RetryAfter: time.Minute}}, v.List)
	})
}

// A failure of our own machine says nothing about the host.
func TestAFailureOfOurOwnMachineSaysNothingToTheGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		v := &scene.VerdictGate{}
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Gate, o.Run.Host = v, "h"
		_, d := s.Down(&o)
		v.List = nil
		d.Refuse(os.NewSyscallError("socket", syscall.EMFILE))
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassStop}}, v.List)
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

// A dial that succeeded is an answer of the host. A failure of OnSession counts against the
// host only if it shows that the host is overloaded or gone.
func TestAFailedOpeningCountsAgainstTheHostOnlyIfItShowsThatItIsDown(t *testing.T) {
	type opening = func(context.Context, *reconnect.Opening) error
	read := func(_ context.Context, op *reconnect.Opening) error { _, err := op.Read(); return err }
	refused := func(err error) opening { return func(context.Context, *reconnect.Opening) error { return err } }
	// What OnSession or the peer does, and the verdict for the gate.
	for name, test := range map[string]struct {
		open opening
		peer func(*conntest.Fake)
		want backoff.Class
	}{
		"login refused":           {refused(scene.ErrLost), nil, backoff.ClassOK},
		"somebody must mend it":   {refused(backoff.Slow(scene.ErrLost)), nil, backoff.ClassOK},
		"new credentials":         {refused(backoff.Refresh(scene.ErrLost)), nil, backoff.ClassOK},
		"never again":             {refused(backoff.Permanent(scene.ErrLost)), nil, backoff.ClassOK},
		"asked to wait":           {refused(backoff.RetryAfter(scene.ErrLost, time.Hour)), nil, backoff.ClassOK},
		"a close frame":           {read, func(f *conntest.Fake) { f.Fail(&conn.CloseError{Code: 1008}) }, backoff.ClassOK},
		"a close for overload":    {read, func(f *conntest.Fake) { f.Fail(&conn.CloseError{Code: 1013}) }, backoff.ClassOverload},
		"overload":                {refused(scene.Answered(503)), nil, backoff.ClassOverload},
		"lost while it was read":  {read, func(f *conntest.Fake) { f.Fail(scene.ErrLost) }, backoff.ClassRetry},
		"not ready within limits": {read, nil, backoff.ClassOverload},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				// The session is not opened.
				v := &scene.VerdictGate{}
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					if op.Session != s.Session {
						return nil
					}
					return test.open(ctx, op)
				}
				o.Run.Gate, o.Run.Host = v, "h"
				_, d := s.Down(&o)
				v.List = nil
				peer := d.Accept()
				if test.peer != nil {
					test.peer(peer)
				}
				// After OpenTimeout the gate has one verdict.
				time.Sleep(31 * time.Second)
				synctest.Wait()
				require.Equal(t, []backoff.Verdict{{Class: test.want}}, v.List)
			})
		})
	}
}

// A bare Run recognizes a lost connection by its error.
func TestALostConnectionOfARunCountsAgainstTheHost(t *testing.T) {
	for _, test := range []struct {
		err  error
		want backoff.Class
	}{
		{scene.ErrLost, backoff.ClassOK},
		{io.EOF, backoff.ClassRetry},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), backoff.ClassRetry},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := &scene.VerdictGate{}
			reconnect.Run(t.Context(), func(context.Context) (*scene.RunConn, error) { return &scene.RunConn{}, nil },
				func(context.Context, *scene.RunConn, *reconnect.Session) error { return test.err },
				&reconnect.RunOptions{Gate: v, Host: "h", Policy: backoff.Limit(scene.Every(0), 1, 0)})
			require.Equal(t, test.want, v.List[0].Class, test.err)
		})
	}
}

// An account whose login is refused does not keep the connections of other accounts out.
func TestRefusedLoginsDoNotCloseASharedGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g, err := budget.NewGate(nil)
		require.NoError(t, err)
		run := reconnect.RunOptions{Gate: g, Host: "h"}
		// One login works, and many are refused.
		c, good := s.Ready(&reconnect.Options{Run: run})
		refused := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return conntest.NewFake(nil), nil })
		for range 20 {
			other, err := reconnect.New(refused, &reconnect.Options{
				OnSession: func(context.Context, *reconnect.Opening) error { return scene.ErrLost },
				Run:       run,
			})
			require.NoError(t, err)
			defer scene.CloseAndWait(other)
		}
		// The gate stays open: the one that works is soon ready after each loss.
		for range 10 {
			time.Sleep(20 * time.Minute)
			require.False(t, g.Status("h").Down)
			lost := s.Now()
			good.Fail(scene.ErrLost)
			d := s.WantDial()
			require.Less(t, d.At-lost, 2*time.Second, "the first wait of the default, and nothing at the gate")
			good = d.Accept()
			require.Equal(t, reconnect.StateReady, c.State())
		}
	})
}

// kickingGate is a Gate whose Outlook kicks the Conn. It admits dials until c is set.
type kickingGate struct {
	c atomic.Pointer[reconnect.Conn]
}

func (g *kickingGate) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	if g.c.Load() == nil {
		return func(backoff.Verdict) {}, nil
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (g *kickingGate) Outlook(string) *budget.Outlook {
	g.c.Load().Kick()
	return &budget.Outlook{Err: scene.ErrLost}
}

// Promise 14: no lock is held while the Outlook of a gate runs.
func TestOutlookOfGateMayKick(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		g := new(kickingGate)
		o, _ := scene.Sending(reconnect.WhenDownFail)
		o.Run.Gate, o.Run.Host = g, "h"
		c, d := s.Down(o)
		g.c.Store(c)
		d.Refuse(scene.ErrLost)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, scene.ErrLost, c.Status().Outlook.Err)
		c.Kick()
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: scene.Text("x")}), reconnect.ErrNotReady)
		scene.CloseAndWait(c)
	})
}
