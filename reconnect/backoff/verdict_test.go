package backoff_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// marks are the marks that decide a class.
var marks = map[backoff.Class]func(error) error{
	backoff.ClassStop: backoff.Permanent, backoff.ClassSlow: backoff.Slow, backoff.ClassRefresh: backoff.Refresh,
}

func TestPermanentStopsHoweverDeep(t *testing.T) {
	err := errors.Join(answered(503), fmt.Errorf("login: %w", backoff.RetryAfter(backoff.Permanent(io.EOF), time.Second)))
	require.Equal(t, backoff.Verdict{Class: backoff.ClassStop}, backoff.Classify(err))
}

func TestAMarkDecidesTheClassBeforeWhatTheErrorKnows(t *testing.T) {
	for _, err := range []error{io.EOF, answered(429), judged(backoff.ClassRetry), tardy(time.Second)} {
		for class, mark := range marks {
			deep := errors.Join(answered(503), fmt.Errorf("login: %w", mark(err)))
			require.Equal(t, class, backoff.Classify(deep).Class, "%v", err)
		}
	}
}

func TestTheOutermostMarkDecidesTheClass(t *testing.T) {
	for _, inner := range marks {
		for class, outer := range marks {
			require.Equal(t, class, backoff.Classify(outer(fmt.Errorf("login: %w", inner(io.EOF)))).Class)
			require.Equal(t, class, backoff.Classify(errors.Join(io.EOF, outer(io.EOF), inner(io.EOF))).Class, "the first")
		}
	}
}

func TestAMarkKeepsTheRetryAfterInsideAndOutside(t *testing.T) {
	want := backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: time.Minute}
	require.Equal(t, want, backoff.Classify(backoff.Slow(backoff.RetryAfter(io.EOF, time.Minute))))
	require.Equal(t, want, backoff.Classify(backoff.RetryAfter(backoff.Slow(io.EOF), time.Minute)))
}

func TestMarksPrintAndUnwrapAsWhatTheyMark(t *testing.T) {
	cause := fmt.Errorf("read feed: %w", io.EOF)
	for _, marked := range []error{
		backoff.Permanent(cause), backoff.Slow(cause), backoff.Refresh(cause), backoff.RetryAfter(cause, time.Second),
	} {
		require.EqualError(t, marked, cause.Error())
		require.ErrorIs(t, marked, io.EOF)
		require.Equal(t, cause, errors.Unwrap(marked))
	}
}

func TestMarksOfNilAreNil(t *testing.T) {
	require.NoError(t, backoff.Permanent(nil))
	require.NoError(t, backoff.Slow(nil))
	require.NoError(t, backoff.Refresh(nil))
	require.NoError(t, backoff.RetryAfter(nil, time.Second))
}

func TestRetryAfterKeepsTheClass(t *testing.T) {
	for _, err := range []error{io.EOF, answered(404), answered(429), judged(backoff.ClassRefresh)} {
		want := backoff.Classify(err)
		want.RetryAfter = time.Minute
		want.Caller = errors.As(err, new(answered))
		require.Equal(t, want, backoff.Classify(fmt.Errorf("dial: %w", backoff.RetryAfter(err, time.Minute))))
	}
}

func TestTheOutermostRetryAfterCounts(t *testing.T) {
	err := backoff.RetryAfter(backoff.RetryAfter(tardy(3*time.Second), 2*time.Second), time.Second)
	require.Equal(t, time.Second, backoff.Classify(err).RetryAfter)
}
