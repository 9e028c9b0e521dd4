package dialer_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

const where = "redis.test:6379"

var (
	ctx      = context.Background()
	doubling = &backoff.Exponential{Cap: 64 * time.Second, Jitter: backoff.JitterNone}
	hung     = conntest.Fault{Hang: true}
)

// away is a network on which nobody listens, and a dialer on it.
func away(d *dialer.Dialer) (*conntest.Network, *dialer.Dialer) {
	n := new(conntest.Network)
	d.DialOnce = n.DialContext
	return n, d
}

// seconds is when each dial began, after the first.
func seconds(n *conntest.Network) (s []float64) {
	dials := n.Dials(where)
	for _, at := range dials {
		s = append(s, at.Sub(dials[0]).Seconds())
	}
	return s
}

func TestConnectRetryMakesEightTriesIn127Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{Policy: backoff.Limit(doubling, 7, 0), MaxElapsed: -1})
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.Equal(t, []float64{0, 1, 3, 7, 15, 31, 63, 127}, seconds(n))
		require.EqualError(t, err, "dial tcp redis.test:6379: gave up after 8 tries in 2m7s: connect: connection refused")
		require.Equal(t, 1, n.Count("").MaxHeld) // a fresh socket each, one at a time
	})
}

func TestAServerThatComesBackIsFoundByTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{Policy: doubling})
		n.Fault(where, conntest.Fault{}, conntest.Fault{}, conntest.Fault{Delay: time.Second})
		time.AfterFunc(2*time.Second, func() { listen(t, n) })
		began := time.Now()
		nc, err := d.DialContext(t.Context(), "tcp", where)
		require.NoError(t, err)
		require.Equal(t, 4*time.Second, time.Since(began))
		require.Same(t, n.Conns(where)[0].Client(), nc) // the very connection, no facade
		nc.Close()
	})
}

func listen(t *testing.T, n *conntest.Network) {
	l, err := n.Listen(where)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
}

func TestMaxElapsedEndsAHungTryAfter127Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{ConnectTimeout: -1})
		n.Fault("", hung)
		began := time.Now()
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.Equal(t, 127*time.Second, time.Since(began))
		require.ErrorIs(t, err, backoff.ErrGaveUp)
		require.EqualError(t, err, "dial tcp redis.test:6379: gave up after 1 try in 2m7s")
		require.Zero(t, n.Count("").Dialing)
	})
}

// By default every wait is jittered, the first included.
func TestDialersAreNotInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all [2][]float64
		for i := range all {
			n, d := away(&dialer.Dialer{})
			_, err := d.DialContext(t.Context(), "tcp", where)
			require.ErrorIs(t, err, backoff.ErrGaveUp)
			all[i] = seconds(n)
			require.Less(t, all[i][1], 1.0)
			require.Less(t, all[i][len(all[i])-1], 127.0)
		}
		require.NotEqual(t, all[0][1], all[1][1])
	})
}

func TestRandRepeatsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all [2][]float64
		for i := range all {
			n, d := away(&dialer.Dialer{Rand: rand.NewPCG(1, 2)})
			_, _ = d.DialContext(t.Context(), "tcp", where)
			all[i] = seconds(n)
		}
		require.Equal(t, all[0], all[1])
	})
}

func TestRandIsUsedByOneGoroutineAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the race detector looks on
		_, d := away(&dialer.Dialer{Rand: rand.NewPCG(1, 2)})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = d.DialContext(t.Context(), "tcp", where) })
		}
		all.Wait()
	})
}

// An error means that there is no connection.
func TestAConnectionThatComesTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{MaxElapsed: time.Second})
		listen(t, n)
		n.Fault(where, conntest.Fault{Delay: 2 * time.Second, IgnoresContext: true})
		nc, err := d.DialContext(t.Context(), "tcp", where)
		require.Nil(t, nc)
		require.ErrorIs(t, err, backoff.ErrGaveUp)
		require.Zero(t, n.Count("").Open)
	})
}

func TestContextEndsItAtWhateverStage(t *testing.T) {
	for name, after := range map[string]time.Duration{"gate": time.Second, "try": 3 * time.Second, "wait": 17500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, d := away(&dialer.Dialer{Policy: doubling, Gate: &gate{hold: 2 * time.Second}})
				n.Fault("", hung) // fails after 16 s
				ctx, cancel := context.WithTimeout(ctx, after)
				defer cancel()
				began := time.Now()
				_, err := d.DialContext(ctx, "tcp", where)
				require.Equal(t, after, time.Since(began))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, backoff.ErrGaveUp)
				require.Zero(t, n.Count("").Dialing)
			})
		})
	}
}

func TestACancelledContextSaysSoAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that it takes 0s
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(io.ErrClosedPipe)
		n, d := away(&dialer.Dialer{})
		_, err := d.DialContext(ctx, "tcp", where)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.EqualError(t, err, "dial tcp redis.test:6379: io: read/write on closed pipe after 0 tries in 0s")
		require.Empty(t, n.Dials(""))
	})
}

// What a Dialer takes.
var (
	_ retry.Budget = (*budget.Budget)(nil)
	_ retry.Budget = (*budget.Breaker)(nil)
	_ backoff.Gate = (*budget.Gate)(nil)
	_ backoff.Gate = reconnect.Gate(nil)
)

// gate is a gate and a budget that record their calls.
type gate struct {
	hold  time.Duration
	lines []string
}

func (g *gate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	g.lines = append(g.lines, "gate "+host)
	select {
	case <-time.After(g.hold):
		return func(v backoff.Verdict) { g.lines = append(g.lines, "gate "+v.Class.String()) }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *gate) Admit(last backoff.Verdict) (func(backoff.Verdict), bool) {
	g.lines = append(g.lines, "admit after "+last.Class.String())
	return func(v backoff.Verdict) { g.lines = append(g.lines, "budget "+v.Class.String()) }, len(g.lines) < 12
}

func TestBudgetAndGateAreAskedBeforeEachTryAndGetItsVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		n, d := away(&dialer.Dialer{Gate: g, Budget: g})
		listen(t, n)
		n.Fault(where, hung, conntest.Fault{})
		nc, err := d.DialContext(t.Context(), "tcp", where)
		require.NoError(t, err)
		nc.Close()
		require.Equal(t, []string{
			"admit after ok", "gate " + where, "gate overload", "budget overload",
			"admit after overload", "gate " + where, "gate ok", "budget ok",
		}, g.lines)
	})
}

func TestADialThatDoesNotReturnGivesItsPermitsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that it takes 0s
		g := &gate{}
		d := &dialer.Dialer{Policy: backoff.Limit(nil, 0, 1), Gate: g, Budget: g}
		d.DialOnce = func(context.Context, string, string) (net.Conn, error) { runtime.Goexit(); return nil, nil }
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.EqualError(t, err, "dial tcp redis.test:6379: gave up after 1 try in 0s: a function given to the dialer did not return: it called runtime.Goexit")
		require.Equal(t, []string{"admit after ok", "gate " + where, "gate retry", "budget retry"}, g.lines)
	})
}

func TestWithoutBudgetItEndsWithTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		n, d := away(&dialer.Dialer{Policy: doubling, Gate: g, Budget: g})
		_, err := d.DialContext(t.Context(), "tcp", where)
		require.ErrorIs(t, err, retry.ErrNoBudget)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, []float64{0, 1, 3}, seconds(n))
		require.EqualError(t, err, "dial tcp redis.test:6379: not admitted by the budget after 3 tries in 3s: connect: connection refused")
	})
}

func TestTheTimeAtTheGateIsOutsideTheTrysLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{ConnectTimeout: time.Second, Gate: &gate{hold: time.Minute}})
		listen(t, n)
		nc, err := d.DialContext(t.Context(), "tcp", where)
		require.NoError(t, err)
		nc.Close()
	})
}

func TestOnProgressIsCalledBeforeEachWaitAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []dialer.Progress
		n, d := away(&dialer.Dialer{Policy: doubling, OnProgress: func(p dialer.Progress) { calls = append(calls, p) }})
		time.AfterFunc(2*time.Second, func() { listen(t, n) })
		nc, err := d.DialContext(t.Context(), "tcp", where)
		require.NoError(t, err)
		nc.Close()
		for i := range 2 {
			require.ErrorIs(t, calls[i].Err, syscall.ECONNREFUSED)
			calls[i].Err = nil
		}
		require.Equal(t, []dialer.Progress{
			{Network: "tcp", Address: where, Tries: 1, Wait: time.Second},
			{Network: "tcp", Address: where, Tries: 2, Wait: 2 * time.Second, Elapsed: time.Second},
			{Network: "tcp", Address: where, Tries: 3, Elapsed: 3 * time.Second, Done: true},
		}, calls)
	})
}

func TestOnProgressGetsTheErrorThatIsReturned(t *testing.T) {
	var last dialer.Progress
	d := &dialer.Dialer{OnProgress: func(p dialer.Progress) { last = p }}
	_, err := d.DialContext(t.Context(), "tcp", "nowhere")
	require.True(t, last.Done)
	require.Equal(t, err, last.Err)
}

func TestClassifyDecides(t *testing.T) {
	n, d := away(&dialer.Dialer{Classify: func(error) backoff.Verdict { return backoff.Verdict{Class: backoff.ClassStop} }})
	_, err := d.DialContext(t.Context(), "tcp", where)
	require.EqualError(t, err, "dial tcp redis.test:6379: connect: connection refused") // as net.Dialer has it
	require.Len(t, n.Dials(where), 1)
}

func TestWrongOptionsAreAnErrorAtOnce(t *testing.T) {
	d := &dialer.Dialer{TCP: dialer.TCPOptions{UserTimeout: time.Second, KeepAlive: net.KeepAliveConfig{Enable: true}}}
	_, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:1")
	require.Equal(t, d.Validate(), errors.Unwrap(err))
	require.ErrorContains(t, err, "dialer: Dialer.TCP.UserTimeout: 1s is less than")
}
