package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

var (
	doubling = &backoff.Exponential{Jitter: backoff.JitterNone}
	ctx      = context.Background()
)

// answered is an error with a status.
type answered int

func (a answered) Error() string   { return fmt.Sprint("status ", int(a)) }
func (a answered) StatusCode() int { return int(a) }

// highest is a source that draws the greatest number of a range.
type highest struct{}

func (highest) Uint64() uint64 { return 1<<64 - 1 }

// failing returns an op that fails with err n times, and a count of its calls.
func failing(err error, n int) (op func(context.Context) error, calls *int) {
	calls = new(int)
	return func(context.Context) error {
		if *calls++; *calls > n {
			return nil
		}
		return err
	}, calls
}

func TestDoWaitsByThePolicyUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		op, calls := failing(io.EOF, 4)
		require.NoError(t, retry.Do(ctx, doubling, op))
		require.Equal(t, 5, *calls)
		require.Equal(t, (1+2+4+8)*time.Second, time.Since(began))
	})
}

func TestDoDoesNotWaitAfterSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, retry.Do(ctx, nil, func(context.Context) error { return nil }))
		require.Zero(t, time.Since(began))
	})
}

// Promise 9: Retry-After is added to the wait.
func TestDoWaitsForWhatTheServerToldAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		op, _ := failing(backoff.RetryAfter(io.EOF, time.Minute), 2)
		require.NoError(t, retry.Do(ctx, doubling, op))
		require.Equal(t, 2*time.Minute+3*time.Second, time.Since(began))
	})
}

func TestDoReturnsAPermanentErrorWithoutItsMark(t *testing.T) {
	for _, marked := range []error{
		backoff.Permanent(io.EOF), backoff.RetryAfter(backoff.Permanent(io.EOF), time.Second), backoff.Permanent(backoff.Slow(io.EOF)),
	} {
		op, calls := failing(marked, 9)
		require.Equal(t, io.EOF, retry.Do(ctx, doubling, op))
		require.Equal(t, 1, *calls)
	}
	op, _ := failing(answered(410), 9)
	require.Equal(t, answered(410), retry.Do(ctx, doubling, op))
}

func TestDoGivesUpWithThePolicyAndWithoutALastSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		op, calls := failing(io.EOF, 99)
		err := retry.Do(ctx, backoff.Limit(doubling, 2, 0), op)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, 3, *calls)
		require.ErrorIs(t, err, backoff.ErrGaveUp)
		require.ErrorIs(t, err, io.EOF)
		require.EqualError(t, err, "gave up after 3 tries in 3s: EOF")
	})
}

func TestDoGivesUpBeforeAWaitThatWouldEndTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		op, _ := failing(backoff.RetryAfter(io.EOF, time.Hour), 99)
		err := retry.Do(ctx, backoff.Limit(doubling, 0, time.Hour), op)
		require.Zero(t, time.Since(began))
		require.EqualError(t, err, "gave up after 1 try in 0s: EOF")
	})
}

func TestDoEndsWithItsContextInAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		cause := errors.New("closing time")
		ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Second, cause)
		defer cancel()
		op, calls := failing(io.EOF, 99)
		err := retry.Do(ctx, doubling, op)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, 3, *calls)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, io.EOF)
		require.EqualError(t, err, "closing time after 3 tries in 5s: EOF")
	})
}

func TestDoShowsTheLastErrorThatWasNotTheContexts(t *testing.T) {
	closing := errors.New("closing time")
	for _, last := range []func(context.Context) error{context.Context.Err, context.Cause} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(ctx, 90*time.Second, closing)
			defer cancel()
			calls := 0
			err := retry.Do(ctx, doubling, func(ctx context.Context) error {
				if calls++; calls == 1 {
					return io.EOF
				}
				<-ctx.Done()
				return fmt.Errorf("dial: %w", last(ctx))
			})
			require.EqualError(t, err, "closing time after 2 tries in 1m30s: EOF")
		})
	}
}

func TestDoJudgesNothingAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that it takes 0s
		ctx, cancel := context.WithCancel(ctx)
		err := retry.Do(ctx, nil, func(context.Context) error {
			cancel()
			return backoff.Permanent(io.EOF)
		})
		require.EqualError(t, err, "context canceled after 1 try in 0s: EOF")
	})
}

func TestElapsedCountsFromTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := retry.Do(ctx, backoff.Limit(doubling, 0, time.Minute), func(context.Context) error {
			time.Sleep(time.Minute)
			return io.EOF
		})
		require.EqualError(t, err, "gave up after 1 try in 1m0s: EOF")
	})
}

func TestDoDoesNotCallAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that it takes 0s
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		op, calls := failing(io.EOF, 1)
		err := retry.Do(ctx, nil, op)
		require.Zero(t, *calls)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualError(t, err, "context canceled after 0 tries in 0s")
		var failed *retry.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, []error{context.Canceled}, failed.Unwrap(), "no try, no error of a try")
	})
}

func TestDoTellsTheOperationItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []backoff.Attempt
		p := backoff.WithTimeouts(doubling, backoff.Timeout{}, backoff.Timeout{})
		require.NoError(t, retry.Do(ctx, p, func(ctx context.Context) error {
			if tries = append(tries, backoff.AttemptFrom(ctx)); len(tries) == 3 {
				return nil
			}
			return answered(503)
		}))
		require.Equal(t, []backoff.Attempt{
			{Number: 1},
			{Number: 2, Connect: 32 * time.Second, Handshake: time.Minute},
			{Number: 3, Connect: 64 * time.Second, Handshake: 2 * time.Minute},
		}, tries)
	})
}

func TestLoopAsksItsOwnClassify(t *testing.T) {
	op, calls := failing(io.EOF, 9)
	r := &retry.Loop{Classify: func(error) backoff.Verdict { return backoff.Verdict{Class: backoff.ClassStop} }}
	require.Equal(t, io.EOF, r.Do(ctx, op))
	require.Equal(t, 1, *calls)
}

func TestAnErrorThatIsClassedOKIsStillAnError(t *testing.T) {
	op, calls := failing(io.EOF, 1)
	r := &retry.Loop{Policy: &backoff.Exponential{Base: -1}, Classify: func(error) backoff.Verdict { return backoff.Verdict{} }}
	require.NoError(t, r.Do(ctx, op))
	require.Equal(t, 2, *calls)
}

func TestLoopNotifiesBeforeEachWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var lines []string
		op, _ := failing(backoff.RetryAfter(io.EOF, time.Second), 2)
		r := &retry.Loop{Policy: doubling, OnWait: func(err error, wait time.Duration) {
			lines = append(lines, fmt.Sprint(time.Since(began), ": ", err, ", wait ", wait))
		}}
		require.NoError(t, r.Do(ctx, op))
		require.Equal(t, []string{"0s: EOF, wait 2s", "2s: EOF, wait 3s"}, lines)
	})
}

func TestLoopDrawsFromItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		op, _ := failing(io.EOF, 3)
		require.NoError(t, (&retry.Loop{Policy: &backoff.Exponential{}, Rand: highest{}}).Do(ctx, op))
		require.Equal(t, (1+2+4)*time.Second-3, time.Since(began))
	})
}

// trap is a book and a Policy. One of their functions does not return, but panics or ends
// its goroutine.
type trap struct {
	book
	at    string
	leave func()
}

func (p *trap) pass(at string) {
	if at == p.at {
		p.leave()
	}
}

func (p *trap) Admit(last backoff.Verdict) (func(backoff.Verdict), bool) {
	p.pass("Admit")
	done, ok := p.book.Admit(last)
	return func(v backoff.Verdict) { done(v); p.pass("the budget's done") }, ok
}

func (p *trap) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	p.pass("Acquire")
	done, err := p.book.Acquire(ctx, host)
	return func(v backoff.Verdict) { done(v); p.pass("the gate's done") }, err
}

func (p *trap) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	p.pass("Next")
	return backoff.Step{Wait: time.Second}, true
}

// run makes one operation that fails, and returns what it panicked with.
func (p *trap) run() (value any) {
	r := p.retrier()
	r.Policy, r.Budget, r.Gate = p, p, p
	r.Classify = func(err error) backoff.Verdict { p.pass("Classify"); return backoff.Classify(err) }
	r.OnWait = func(error, time.Duration) { p.pass("OnWait") }
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		_ = r.Do(ctx, func(context.Context) error { p.pass("op"); return io.EOF })
	}()
	return <-ended
}

func TestWhateverDoesNotReturnEveryPermitIsGivenBackOnce(t *testing.T) {
	first := []string{"0s admit after ok", "0s gate h", "0s gate retry", "0s budget retry"}
	unjudged := []string{"0s admit after ok", "0s gate h", "0s gate stop", "0s budget stop"}
	for at, want := range map[string][]string{
		"Admit":             nil,
		"Acquire":           {"0s admit after ok", "0s budget stop, skipped"},
		"op":                unjudged,
		"Classify":          unjudged,
		"the gate's done":   first,
		"the budget's done": first,
		"Next":              first,
		"OnWait":            append(first[:4:4], "0s admit after retry", "0s budget stop, skipped"),
	} {
		for value, leave := range map[any]func(){"nil map": func() { panic("nil map") }, nil: runtime.Goexit} {
			synctest.Test(t, func(t *testing.T) {
				p := &trap{at: at, leave: leave}
				require.Equal(t, value, p.run(), at)
				require.Equal(t, want, p.lines, "%s: %v", at, value)
			})
		}
	}
}

// giveUp is a policy that gives up.
type giveUp struct{}

func (giveUp) Next(backoff.History, *rand.Rand) (backoff.Step, bool) { return backoff.Step{}, false }

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestMaxElapsedCutsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := (&retry.Loop{MaxElapsed: time.Minute}).Do(ctx, hang)
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, err, backoff.ErrGaveUp)
		require.NotErrorIs(t, err, context.DeadlineExceeded) // which means the caller's own deadline
		require.EqualError(t, err, "gave up after 1 try in 1m0s")
	})
}

func TestAWaitThatWouldLastUntilMaxElapsedIsNotBegun(t *testing.T) {
	for _, limit := range []time.Duration{6 * time.Second, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			op, _ := failing(io.EOF, 99)
			err := (&retry.Loop{Policy: doubling, MaxElapsed: limit}).Do(ctx, op)
			require.EqualError(t, err, fmt.Sprintf("gave up after 3 tries in 3s, %s (%v): EOF", "because the next wait would not end within MaxElapsed", limit))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		op, _ := failing(io.EOF, 99)
		err := (&retry.Loop{Policy: doubling, MaxElapsed: 7*time.Second + 1}).Do(ctx, op)
		require.ErrorContains(t, err, "gave up after 4 tries in 7s, ")
	})
}

func TestMaxElapsedCountsWhatTheServerToldUsToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op, _ := failing(backoff.RetryAfter(io.EOF, time.Minute), 99)
		err := (&retry.Loop{Policy: doubling, MaxElapsed: time.Minute}).Do(ctx, op)
		require.EqualError(t, err, "gave up after 1 try in 0s, because the next wait would not end within MaxElapsed (1m0s): EOF")
	})
}

func TestANegativeMaxElapsedIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op, calls := failing(io.EOF, 20)
		require.NoError(t, (&retry.Loop{MaxElapsed: -1}).Do(ctx, op))
		require.Equal(t, 21, *calls)
	})
}

func TestARetryErrorIsTheContextsErrorWhateverItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(io.ErrClosedPipe)
	err := retry.Do(ctx, nil, hang)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestTimeoutSaysWhetherTimeRanOut(t *testing.T) {
	past, cancel := context.WithDeadlineCause(ctx, time.Unix(0, 0), io.EOF)
	defer cancel()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		r    retry.Loop
		err  error
		want bool
	}{
		"deadline":   {past, retry.Loop{}, nil, true},
		"MaxElapsed": {ctx, retry.Loop{Policy: doubling, MaxElapsed: time.Second}, io.EOF, true},
		"last try":   {ctx, retry.Loop{Policy: giveUp{}}, os.ErrDeadlineExceeded, true},
		"refused":    {ctx, retry.Loop{Policy: giveUp{}}, io.EOF, false},
		"cancelled":  {gone, retry.Loop{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.r.Do(c.ctx, func(context.Context) error { return c.err })
			var e *retry.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, c.want, e.Timeout())
		})
	}
}

func TestNoNumberBreaksMaxElapsed(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 4, 1: 1, -1: 4, math.MinInt64: 4, math.MaxInt64: 4} {
		synctest.Test(t, func(t *testing.T) {
			op, calls := failing(io.EOF, 3)
			_ = (&retry.Loop{Policy: doubling, MaxElapsed: limit}).Do(ctx, op)
			require.Equal(t, want, *calls, "%v", limit)
		})
	}
}

func TestKickShortensWaitButNotRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kick := make(chan struct{}, 1)
		l := &retry.Loop{Policy: &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterNone}, Kick: kick}
		l.OnWait = func(error, time.Duration) { kick <- struct{}{} }
		began := time.Now()
		op, calls := failing(backoff.RetryAfter(io.EOF, time.Minute), 2)
		require.NoError(t, l.Do(ctx, op))
		require.Equal(t, 3, *calls)
		require.Equal(t, 2*time.Minute, time.Since(began))
	})
}
