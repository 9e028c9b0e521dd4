package reconnect_test

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
)

// The tests of run.go that are about the Gate: when it is passed, and which verdict it gets.

// Each dial passes the gate, the first one too.
func TestEachDialPassesTheGateOnce(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := withPolicy(every(time.Second))
		o.Run.Gate, o.Run.Host = g, "h"
		fail := errors.New("not today")
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == s.session {
				return fail
			}
			return nil
		}
		_, d := s.down(&o)
		require.Equal(t, "acquire h", g.all()[len(g.all())-1], "the first dial passes it too")
		before := len(g.all()) - 1
		d.refuse(answered(503))
		s.wantDial().accept() // OnSession fails, and the gate gets its verdict
		s.wantDial().accept()
		ok := backoff.ClassOK.String()
		require.Equal(t, []string{
			"acquire h", "done " + backoff.ClassOverload.String(),
			"acquire h", "done " + ok, "acquire h", "done " + ok,
		}, g.all()[before:])
	})
}

// Promise 12: at the gate a Conn is connecting, not waiting any more.
func TestAtTheGateTheStateIsConnecting(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.Run.Gate, o.Run.Host = &gate{}, "h"
		c, d := s.down(&o)
		d.refuse(errLost)
		time.Sleep(1500 * time.Millisecond)
		s.wantNoDial()
		require.Equal(t, reconnect.StateConnecting, c.State())
	})
}

// The Conn at the gate has not failed, but another has: so it is that Conn's error that says what is wrong.
func TestAConnAtTheGateOfAHostThatIsDownKnowsWhy(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1, Probe: every(10 * time.Second)})
		require.NoError(t, err)
		o := withPolicy(every(time.Minute))
		o.Run.Gate, o.Run.Host, o.Run.Name = g, "h", "first"
		first, d := s.down(&o)
		o.Run.Name = "second"
		second := s.open(&o)
		time.Sleep(time.Second)
		require.True(t, second.Status().AtGate)
		require.Nil(t, second.Status().Outlook, "the host is up")
		d.refuse(errLost)
		require.Nil(t, first.Status().Outlook, "it does not wait at the gate")
		require.Equal(t, &budget.Outlook{
			Err: errLost, Next: time.Now().Add(10 * time.Second), By: "second", Waiting: 1, Gate: g,
		}, second.Status().Outlook)

		o.Run.Name = "third"
		third := s.open(&o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = third.AwaitReady(ctx)
		require.ErrorIs(t, err, errLost)
		require.EqualError(t, err, "not ready but connecting at the gate (the next dial begins in 9s): "+
			"context deadline exceeded: lost")
		s.wantDial()
		require.Equal(t, &budget.Outlook{Err: errLost, By: "second", Waiting: 1, Gate: g}, third.Status().Outlook)
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
	inEachForm(t, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(nil)
		require.NoError(t, err)
		w := &wrappedGate{Gate: g}
		o := withPolicy(every(time.Minute))
		o.Run.Gate, o.Run.Host = w, "h"
		c, d := s.down(&o)
		d.accept()
		require.Equal(t, c.Stats().Dials, uint64(w.n))
	})
}

// The try has failed, but Stats counts no dial and no failure.
func TestAGateThatRefusesIsAFailedTry(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		var refusal error
		o := withPolicy(every(time.Hour))
		o.Run.Gate, o.Run.Host = refusingGate(func() error { return refusal }), "h"
		c, d := s.down(&o)
		refusal = errors.New("full")
		d.refuse(errLost)
		before := c.Stats()
		time.Sleep(time.Hour)
		s.wantNoDial()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.EqualError(t, c.Status().Err, "gate h: full")
		require.ErrorIs(t, c.Status().Err, refusal)
		require.Equal(t, before, c.Stats())
	})
}

// Promise 11: Close does not wait for the gate.
func TestCloseLeavesTheGate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(0))
		o.Run.Gate, o.Run.Host = &gate{}, "h"
		c, d := s.down(&o)
		d.refuse(errLost)
		require.True(t, c.Status().AtGate)
		closeAndWait(c)
		require.Equal(t, time.Duration(0), s.now())
	})
}

func TestTheLossOfAReadySessionDoesNotReachTheGate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := withPolicy(every(time.Hour))
		o.Run.Gate, o.Run.Host = g, "h"
		_, peer := s.ready(&o)
		require.Contains(t, g.all(), "done "+backoff.ClassOK.String())
		before := len(g.all())
		peer.Fail(errLost)
		synctest.Wait()
		require.Len(t, g.all(), before)
	})
}

// A dial that was cancelled says nothing about the host.
func TestTheGateGetsClassStopForADialThatWasCancelled(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := withPolicy(every(time.Hour))
		o.Run.Gate, o.Run.Host = g, "h"
		c, _ := s.down(&o)
		before := len(g.all())
		closeAndWait(c)
		require.Equal(t, []string{"done " + backoff.ClassStop.String()}, g.all()[before:])
	})
}

// Promises 9 and 10: the time to wait that the gate gets is clamped as well.
func TestTheGateGetsAClampedRetryAfter(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		v := &verdictGate{}
		classify := backoff.Classify
		o := withPolicy(every(time.Hour))
		o.Run.Gate, o.Run.Host = v, "h"
		o.Run.Classify = func(err error) backoff.Verdict { return classify(err) }
		_, d := s.down(&o)
		v.list = nil
		classify = func(error) backoff.Verdict {
			return backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 1 << 60}
		}
		d.refuse(errLost)
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOverload, RetryAfter: time.Hour}}, v.list)
	})
}

// A Retry-After in the answer to a dial holds for all connections to the host.
func TestARefusedDialReportsItsRetryAfterToTheGate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		v := &verdictGate{}
		o := withPolicy(every(time.Hour))
		o.Run.Gate, o.Run.Host = v, "h"
		_, d := s.down(&o)
		v.list = nil
		d.refuse(backoff.RetryAfter(answered(503), time.Minute))
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOverload, RetryAfter: time.Minute}}, v.list)
	})
}

// A failure of our own machine says nothing about the host.
func TestAFailureOfOurOwnMachineSaysNothingToTheGate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		v := &verdictGate{}
		o := withPolicy(every(time.Second))
		o.Run.Gate, o.Run.Host = v, "h"
		_, d := s.down(&o)
		v.list = nil
		d.refuse(os.NewSyscallError("socket", syscall.EMFILE))
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassStop}}, v.list)
		require.Equal(t, time.Second, s.wantDial().at)
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
		"login refused":           {refused(errLost), nil, backoff.ClassOK},
		"somebody must mend it":   {refused(backoff.Slow(errLost)), nil, backoff.ClassOK},
		"new credentials":         {refused(backoff.Refresh(errLost)), nil, backoff.ClassOK},
		"never again":             {refused(backoff.Permanent(errLost)), nil, backoff.ClassOK},
		"asked to wait":           {refused(backoff.RetryAfter(errLost, time.Hour)), nil, backoff.ClassOK},
		"a close frame":           {read, func(f *conntest.Fake) { f.Fail(&conn.CloseError{Code: 1008}) }, backoff.ClassOK},
		"a close for overload":    {read, func(f *conntest.Fake) { f.Fail(&conn.CloseError{Code: 1013}) }, backoff.ClassOverload},
		"overload":                {refused(answered(503)), nil, backoff.ClassOverload},
		"lost while it was read":  {read, func(f *conntest.Fake) { f.Fail(errLost) }, backoff.ClassRetry},
		"not ready within limits": {read, nil, backoff.ClassOverload},
	} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				// The session is not opened.
				v := &verdictGate{}
				o := withPolicy(every(time.Hour))
				o.OnSession = func(ctx context.Context, op *reconnect.Opening) error {
					if op.Session != s.session {
						return nil
					}
					return test.open(ctx, op)
				}
				o.Run.Gate, o.Run.Host = v, "h"
				_, d := s.down(&o)
				v.list = nil
				peer := d.accept()
				if test.peer != nil {
					test.peer(peer)
				}
				// After OpenTimeout the gate has one verdict.
				time.Sleep(31 * time.Second)
				synctest.Wait()
				require.Equal(t, []backoff.Verdict{{Class: test.want}}, v.list)
			})
		})
	}
}

// A bare Run recognizes a lost connection by its error.
func TestALostConnectionOfARunCountsAgainstTheHost(t *testing.T) {
	for _, test := range []struct {
		err  error
		want backoff.Class
	}{{errLost, backoff.ClassOK}, {io.EOF, backoff.ClassRetry}, {fmt.Errorf("read: %w", syscall.ECONNRESET), backoff.ClassRetry}} {
		synctest.Test(t, func(t *testing.T) {
			v := &verdictGate{}
			reconnect.Run(t.Context(), func(context.Context) (*runConn, error) { return &runConn{}, nil },
				func(context.Context, *runConn, *reconnect.Session) error { return test.err },
				&reconnect.RunOptions{Gate: v, Host: "h", Policy: backoff.Limit(every(0), 1, 0)})
			require.Equal(t, test.want, v.list[0].Class, test.err)
		})
	}
}

// An account whose login is refused does not keep the connections of other accounts out.
func TestRefusedLoginsDoNotCloseASharedGate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(nil)
		require.NoError(t, err)
		run := reconnect.RunOptions{Gate: g, Host: "h"}
		// One login works, and many are refused.
		c, good := s.ready(&reconnect.Options{Run: run})
		refused := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return conntest.NewFake(nil), nil })
		for range 20 {
			other, err := reconnect.New(refused, &reconnect.Options{
				OnSession: func(context.Context, *reconnect.Opening) error { return errLost },
				Run:       run,
			})
			require.NoError(t, err)
			defer closeAndWait(other)
		}
		// The gate stays open: the one that works is soon ready after each loss.
		for range 10 {
			time.Sleep(20 * time.Minute)
			require.False(t, g.Status("h").Down)
			lost := s.now()
			good.Fail(errLost)
			d := s.wantDial()
			require.Less(t, d.at-lost, 2*time.Second, "the first wait of the default, and nothing at the gate")
			good = d.accept()
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
	return &budget.Outlook{Err: errLost}
}

// Promise 14: no lock is held while the Outlook of a gate runs.
func TestOutlookOfGateMayKick(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		g := new(kickingGate)
		o, _ := sending(reconnect.WhenDownFail)
		o.Run.Gate, o.Run.Host = g, "h"
		c, d := s.down(o)
		g.c.Store(c)
		d.refuse(errLost)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, errLost, c.Status().Outlook.Err)
		c.Kick()
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: text("x")}), reconnect.ErrNotReady)
		closeAndWait(c)
	})
}
