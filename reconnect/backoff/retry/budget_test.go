package retry_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// book is a Budget and a Gate that write down all calls of them, and what else happens.
type book struct {
	began  time.Time
	lines  []string
	refuse int           // the number of the Admit that is refused; 0: none
	hold   time.Duration // time at the gate
	shut   error         // what the gate returns; nil: it lets all through
}

func (b *book) note(format string, args ...any) {
	b.lines = append(b.lines, fmt.Sprintf("%v %s", time.Since(b.began), fmt.Sprintf(format, args...)))
}

func (b *book) Admit(last backoff.Verdict) (func(backoff.Verdict), bool) {
	b.note("admit after %v", last.Class)
	b.refuse--
	return func(v backoff.Verdict) {
		skipped := ""
		if v.Skipped {
			skipped = ", skipped"
		}
		b.note("budget %v%s", v.Class, skipped)
	}, b.refuse != 0
}

func (b *book) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	b.note("gate %s", host)
	select {
	case <-time.After(b.hold):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(v backoff.Verdict) { b.note("gate %v", v.Class) }, b.shut
}

// op fails with errs in turn and then succeeds.
func (b *book) op(errs ...error) func(context.Context) error {
	return func(context.Context) error {
		b.note("try")
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func (b *book) retrier() *retry.Loop {
	b.began = time.Now()
	return &retry.Loop{Policy: doubling, Budget: b, Gate: b, Host: "h", OnWait: func(_ error, wait time.Duration) { b.note("wait %v", wait) }}
}

func TestAnOutcomeIsReportedBeforeTheNextTryIsAdmittedAndThatBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{hold: time.Second}
		require.NoError(t, b.retrier().Do(ctx, b.op(answered(503))))
		require.Equal(t, []string{
			"0s admit after ok", "0s gate h", "1s try", "1s gate overload", "1s budget overload",
			"1s admit after overload", "1s wait 1s",
			"2s gate h", "3s try", "3s gate ok", "3s budget ok",
		}, b.lines)
	})
}

func TestARefusedRetryEndsWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{refuse: 2}
		err := b.retrier().Do(ctx, b.op(io.EOF, io.EOF))
		require.ErrorIs(t, err, retry.ErrNoBudget)
		require.ErrorIs(t, err, io.EOF)
		require.EqualError(t, err, "not admitted by the budget after 1 try in 0s: EOF")
		require.Equal(t, "0s admit after retry", b.lines[len(b.lines)-1])
	})
}

// An open circuit breaker does that.
func TestARefusedFirstTryIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that it takes 0s
		b := &book{refuse: 1}
		err := b.retrier().Do(ctx, b.op())
		require.EqualError(t, err, "not admitted by the budget after 0 tries in 0s")
		require.Len(t, b.lines, 1)
	})
}

func TestNothingIsTakenFromTheBudgetWhenThePolicyGivesUp(t *testing.T) {
	b := &book{}
	r := b.retrier()
	r.Policy = giveUp{}
	require.ErrorIs(t, r.Do(ctx, b.op(io.EOF)), backoff.ErrGaveUp)
	require.NotContains(t, fmt.Sprint(b.lines), "admit after retry")
}

func TestWhatWasCancelledSaysNothingAboutTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		b := &book{}
		require.ErrorIs(t, b.retrier().Do(ctx, hang), context.Canceled)
		require.Equal(t, []string{"1s gate stop", "1s budget stop"}, b.lines[2:])
	})
}

func TestATryThatWasNeverBegunIsSkipped(t *testing.T) {
	for after, where := range map[time.Duration]string{
		500 * time.Millisecond:  "at the gate",
		1500 * time.Millisecond: "in the wait",
		2500 * time.Millisecond: "at the gate again",
	} {
		for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(ctx, after)
				defer cancel()
				if end == context.Canceled {
					ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
					time.AfterFunc(after, cancel)
				}
				b := &book{hold: time.Second}
				require.ErrorIs(t, b.retrier().Do(ctx, b.op(io.EOF)), end)
				require.Equal(t, fmt.Sprint(after, " budget stop, skipped"), b.lines[len(b.lines)-1], where)
			})
		}
	}
}

// The server has answered, so that a breaker may close.
func TestPermanentErrorIsSuccessForBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, err := range map[string]error{
			"ok":   backoff.Permanent(answered(404)),
			"stop": ours{},
		} {
			b := &book{}
			require.Error(t, b.retrier().Do(ctx, b.op(err)))
			require.Equal(t, "0s budget "+want, b.lines[len(b.lines)-1])
		}
		b := &book{}
		require.Panics(t, func() { _ = b.retrier().Do(ctx, func(context.Context) error { panic("op") }) })
		require.Equal(t, "0s budget stop", b.lines[len(b.lines)-1])
	})
}

// ours is an error of our own machine that no further try can change.
type ours struct{}

func (ours) Error() string            { return "no such key" }
func (ours) Verdict() backoff.Verdict { return backoff.Verdict{Class: backoff.ClassStop, Local: true} }

func TestClassifyCannotSkipATryThatWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		r := b.retrier()
		r.Classify = func(error) backoff.Verdict { return backoff.Verdict{Class: backoff.ClassStop, Skipped: true} }
		require.Equal(t, io.EOF, r.Do(ctx, b.op(io.EOF)))
		require.Equal(t, "0s budget ok", b.lines[len(b.lines)-1])
	})
}

func TestATryThatADeadlineCutCountsAsOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		b := &book{}
		err := b.retrier().Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"1s gate overload", "1s budget overload"}, b.lines[2:])
	})
}

func TestATryThatTheGateRefusesIsRepeatedAndSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{shut: io.EOF, refuse: 3}
		err := b.retrier().Do(ctx, b.op())
		require.EqualError(t, err, "not admitted by the budget after 0 tries in 1s: gate h: EOF")
		round := []string{"gate h", "budget stop, skipped", "admit after retry"}
		require.Equal(t, []string{
			"0s admit after ok", "0s " + round[0], "0s " + round[1], "0s " + round[2],
			"0s wait 1s", "1s " + round[0], "1s " + round[1], "1s " + round[2],
		}, b.lines)
	})
}

// verdicts is a Budget and a Gate that remember the outcomes.
type verdicts []backoff.Verdict

func (v *verdicts) tell(told backoff.Verdict)                           { *v = append(*v, told) }
func (v *verdicts) Admit(backoff.Verdict) (func(backoff.Verdict), bool) { return v.tell, true }
func (v *verdicts) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	return v.tell, nil
}

// Promises 9 and 10.
func TestBudgetAndGateGetAClampedRetryAfter(t *testing.T) {
	var told verdicts
	op, _ := failing(backoff.RetryAfter(answered(503), 1<<60), 99)
	_ = (&retry.Loop{Policy: giveUp{}, Budget: &told, Gate: &told}).Do(ctx, op)
	want := backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour}
	require.Equal(t, verdicts{want, want}, told)
}

// Too many open files are no fault of the server, and neither of the two learns from that.
func TestBudgetAndGateDoNotHearOfOurOwnMachine(t *testing.T) {
	var told verdicts
	op, _ := failing(syscall.EMFILE, 99)
	_ = (&retry.Loop{Policy: giveUp{}, Budget: &told, Gate: &told}).Do(ctx, op)
	want := backoff.Verdict{Class: backoff.ClassStop}
	require.Equal(t, verdicts{want, want}, told)
}

// bucket is a retry budget, in hundredths of a retry.
type bucket struct {
	mu     sync.Mutex
	tokens int
}

func (b *bucket) Admit(last backoff.Verdict) (func(backoff.Verdict), bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last.Class == backoff.ClassOK {
		return b.refill, true
	}
	if b.tokens < 100 {
		return nil, false
	}
	b.tokens -= 100
	return func(backoff.Verdict) {}, true
}

func (b *bucket) refill(v backoff.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.Class == backoff.ClassOK {
		b.tokens = min(b.tokens+10, 3000)
	}
}

// operations runs n operations of at most three tries, and counts calls and errors.
func (b *bucket) operations(n int, fails func(call int) bool) (calls, failed int) {
	r := retry.Loop{Policy: backoff.Limit(&backoff.Exponential{Base: -1}, 2, 0), Budget: b}
	for range n {
		err := r.Do(ctx, func(context.Context) error {
			if calls++; fails(calls) {
				return io.EOF
			}
			return nil
		})
		if err != nil {
			failed++
		}
	}
	return calls, failed
}

func always(int) bool { return true }

func TestATokenBucketAllowsABurstOfThirtyRetries(t *testing.T) {
	b := &bucket{tokens: 3000}
	calls, failed := b.operations(1000, always)
	require.Equal(t, 1030, calls)
	require.Equal(t, 1000, failed)
}

func TestATokenBucketIsFilledByATenthOfTheFirstTriesThatSucceed(t *testing.T) {
	b := &bucket{}
	b.operations(100, func(int) bool { return false })
	require.Equal(t, 1000, b.tokens)
	calls, _ := b.operations(50, always)
	require.Equal(t, 60, calls)
}

func TestASuccessfulRetryFillsNothing(t *testing.T) {
	b := &bucket{tokens: 3000}
	_, failed := b.operations(20, func(call int) bool { return call%2 == 1 })
	require.Zero(t, failed)
	require.Equal(t, 1000, b.tokens)
}

// A Classify may take an error of an op for a success; but the op has failed.
func TestAnErrorThatIsTakenForASuccessIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		l := b.retrier()
		l.Classify = func(error) backoff.Verdict { return backoff.Verdict{} }
		require.NoError(t, l.Do(ctx, b.op(io.EOF)))
		require.Equal(t, []string{
			"0s admit after ok", "0s gate h", "0s try", "0s gate retry", "0s budget retry",
			"0s admit after retry", "0s wait 1s", "1s gate h", "1s try", "1s gate ok", "1s budget ok",
		}, b.lines)
	})
}

// A try that a deadline cut says that the server was slow, whatever the error is.
func TestATryThatADeadlineCutIsAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		l := b.retrier()
		l.Classify = func(error) backoff.Verdict { t.Error("it was not the server's error"); return backoff.Verdict{} }
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := l.Do(short, func(ctx context.Context) error { <-ctx.Done(); return io.EOF })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"0s admit after ok", "0s gate h", "1s gate overload", "1s budget overload"}, b.lines)
	})
}
