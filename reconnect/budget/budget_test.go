package budget_test

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

var (
	first    = backoff.Verdict{}
	success  = backoff.Verdict{}
	refused  = backoff.Verdict{Class: backoff.ClassRetry}
	timeout  = backoff.Verdict{Class: backoff.ClassOverload}
	aborted  = backoff.Verdict{Class: backoff.ClassStop}
	skipped  = backoff.Verdict{Class: backoff.ClassStop, Skipped: true}
	rejected = backoff.Verdict{Class: backoff.ClassSlow}
)

// try makes one try that ends with v, and reports whether it was admitted.
func try(b interface {
	Admit(backoff.Verdict) (func(backoff.Verdict), bool)
}, last, v backoff.Verdict) bool {
	done, ok := b.Admit(last)
	if ok {
		done(v)
	}
	return ok
}

func newBudget(t *testing.T, o *budget.Options) *budget.Budget {
	t.Helper()
	b, err := budget.New(o)
	require.NoError(t, err)
	return b
}

// drain counts how many retries are admitted in a row, all failing like v.
func drain(b *budget.Budget, v backoff.Verdict) int {
	for n := range 10_000 {
		if !try(b, v, v) {
			return n
		}
	}
	return -1
}

func TestAFullBudgetPaysFor30Retries(t *testing.T) {
	require.Equal(t, 30, drain(newBudget(t, nil), refused))
}

func TestTenFirstSuccessesPayForOneRetry(t *testing.T) {
	b := newBudget(t, nil)
	drain(b, refused)
	for range 100 {
		require.True(t, try(b, first, success))
	}
	require.Equal(t, 10, drain(b, refused))
}

// Else a partial failure would get twice the budget.
func TestSuccessesOfRetriesAddNothing(t *testing.T) {
	b := newBudget(t, nil)
	for range 30 {
		require.True(t, try(b, refused, success))
	}
	require.False(t, try(b, refused, success))
}

func TestABudgetNeverRefusesAFirstTry(t *testing.T) {
	b := newBudget(t, nil)
	drain(b, refused)
	require.True(t, try(b, first, refused))
}

func TestABudgetIsNeverMoreThanFull(t *testing.T) {
	b := newBudget(t, nil)
	for range 100 {
		try(b, first, success)
	}
	require.Equal(t, 3000, b.Tokens())
}

// grpc returns the retry throttling of gRFC A6 with the numbers of its example, in thousandths of its tokens.
func grpc() *budget.Options {
	return &budget.Options{Capacity: 10_000, Reserve: 5000, Retry: -1, Failure: 1000, First: 100, Again: 100}
}

// aws returns the bucket of aws-sdk-go-v2's standard mode.
func aws() *budget.Options {
	return &budget.Options{Capacity: 500, Retry: 5, AfterOverload: 10, First: 1, Again: -1}
}

// aws2026 returns the bucket of aws-sdk-go-v2's mode of 2026.
func aws2026() *budget.Options {
	return &budget.Options{Capacity: 500, Retry: 14, AfterOverload: 5, First: 1, Again: -1}
}

// With the numbers of the example in gRFC A6. Retries need more than half of the tokens
// once the failure has taken one.
func TestGRPCRefusesTheRetryAfterTheFifthFailure(t *testing.T) {
	b := newBudget(t, grpc())
	for range 4 {
		try(b, first, refused)
		_, ok := b.Admit(refused)
		require.True(t, ok)
	}
	try(b, first, refused)
	_, ok := b.Admit(refused)
	require.False(t, ok)
}

func TestGRPCNeeds61SuccessesFromZero(t *testing.T) {
	b := newBudget(t, grpc())
	for range 20 {
		try(b, first, refused)
	}
	require.Zero(t, b.Tokens())
	successes := 0
	for b.Tokens() <= 5000+1000 { // more than half is to be left after the failure
		try(b, first, success)
		successes++
	}
	require.Equal(t, 61, successes)
	try(b, first, refused)
	_, ok := b.Admit(refused)
	require.True(t, ok)
}

// 50 after timeouts. The success of a retry gives back what it took.
func TestAWSPaysForAHundredRetries(t *testing.T) {
	require.Equal(t, 100, drain(newBudget(t, aws()), refused))
	require.Equal(t, 50, drain(newBudget(t, aws()), timeout))
	b := newBudget(t, aws())
	drain(b, timeout)
	b2, _ := b.Admit(refused)
	require.Nil(t, b2)
	for range 10 {
		try(b, first, success)
	}
	require.Equal(t, 10, b.Tokens())
	require.True(t, try(b, timeout, success))
	require.Equal(t, 10, b.Tokens())
}

// The numbers are those of the tests of aws-sdk-go-v2.
func TestAWS2026TakesFourteen(t *testing.T) {
	b := newBudget(t, aws2026())
	for _, want := range []int{486, 472} {
		require.True(t, try(b, refused, refused))
		require.Equal(t, want, b.Tokens())
	}
	require.True(t, try(b, timeout, refused))
	require.Equal(t, 467, b.Tokens())
	for capacity, left := range map[int]int{20: 6, 14: 0} {
		o := aws2026()
		o.Capacity = capacity
		b := newBudget(t, o)
		require.Equal(t, 1, drain(b, refused))
		require.Equal(t, left, b.Tokens())
	}
}

func TestATryThatWasCancelledSaysNothing(t *testing.T) {
	b := newBudget(t, grpc())
	try(b, first, aborted)
	require.Equal(t, 10_000, b.Tokens())
}

func TestARetryThatWasNeverBegunCostsNothing(t *testing.T) {
	for _, o := range []*budget.Options{nil, grpc(), aws(), aws2026()} {
		b := newBudget(t, o)
		try(b, timeout, timeout) // a full bucket would hide what is given back in excess
		try(b, timeout, timeout)
		before := b.Tokens()
		for _, last := range []backoff.Verdict{first, refused, timeout} {
			require.True(t, try(b, last, skipped))
			require.Equal(t, before, b.Tokens())
		}
	}
}

func TestARetryThatWasCancelledOnItsWayIsPaidFor(t *testing.T) {
	b := newBudget(t, nil)
	require.True(t, try(b, refused, aborted))
	require.Equal(t, 2900, b.Tokens())
}

func TestWhatIsGivenBackIsNeverMoreThanFull(t *testing.T) {
	b := newBudget(t, nil)
	done, _ := b.Admit(refused)
	for range 100 {
		try(b, first, success)
	}
	done(skipped)
	require.Equal(t, 3000, b.Tokens())
}

// Thirty operations that fail once and are cancelled in the wait after it.
func TestRetriesThatAreCancelledInTheirWaitDoNotEmptyTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, calls := newBudget(t, nil), 0
		r := &retry.Loop{Budget: b, Policy: every(time.Second)}
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			require.Error(t, r.Do(ctx, func(context.Context) error { calls++; return io.EOF }))
			cancel()
		}
		require.Equal(t, 30, calls, "no retry")
		require.Equal(t, 3000, b.Tokens())
	})
}

func TestNewNamesTheWrongOption(t *testing.T) {
	for name, o := range map[string]*budget.Options{
		"Capacity": {Capacity: -1}, "AfterOverload": {AfterOverload: -1}, "Failure": {Failure: -1}, "Reserve": {Reserve: -1},
	} {
		_, err := budget.New(o)
		require.ErrorContains(t, err, "option "+name)
	}
	_, err := budget.New(&budget.Options{Capacity: 500, Reserve: 500})
	require.ErrorContains(t, err, "option Reserve is 500 and Capacity 500: no retry could ever be made")
}

func TestABiggerBurstKeepsTheOtherDefaults(t *testing.T) {
	require.Equal(t, 50, drain(newBudget(t, &budget.Options{Capacity: 5000}), refused))
}

func TestADecisionAllocatesNothing(t *testing.T) {
	b := newBudget(t, nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { try(b, first, success); try(b, refused, success) }))
}

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

func TestAFirstTryAddsOneToTheBucketsOfAWS(t *testing.T) {
	for _, o := range []*budget.Options{aws(), aws2026()} {
		b := newBudget(t, o)
		require.True(t, try(b, refused, refused))
		before := b.Tokens()
		require.True(t, try(b, first, success))
		require.Equal(t, before+1, b.Tokens())
	}
}

// A retry may cost all that the bucket can hold, but not more.
func TestARetryMayCostTheWholeBucket(t *testing.T) {
	require.Equal(t, 1, drain(newBudget(t, &budget.Options{Capacity: 7, Retry: 7}), refused))
	_, err := budget.New(&budget.Options{Capacity: 7, Retry: 8})
	require.Error(t, err)
}
