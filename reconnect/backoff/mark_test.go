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

func TestPermanentStopsHoweverDeep(t *testing.T) {
	err := errors.Join(answered(503), fmt.Errorf("login: %w", backoff.RetryAfter(backoff.Permanent(io.EOF), time.Second)))
	require.Equal(t, backoff.Verdict{Class: backoff.ClassStop}, backoff.Classify(err))
}

func TestMarksPrintAndUnwrapAsWhatTheyMark(t *testing.T) {
	cause := fmt.Errorf("read feed: %w", io.EOF)
	for _, marked := range []error{backoff.Permanent(cause), backoff.RetryAfter(cause, time.Second)} {
		require.EqualError(t, marked, cause.Error())
		require.ErrorIs(t, marked, io.EOF)
		require.Equal(t, cause, errors.Unwrap(marked))
	}
}

func TestMarksOfNilAreNil(t *testing.T) {
	require.NoError(t, backoff.Permanent(nil))
	require.NoError(t, backoff.RetryAfter(nil, time.Second))
}

func TestRetryAfterKeepsTheClass(t *testing.T) {
	for _, err := range []error{io.EOF, answered(404), answered(429), judged(backoff.ClassRefresh)} {
		want := backoff.Verdict{Class: backoff.Classify(err).Class, RetryAfter: time.Minute}
		require.Equal(t, want, backoff.Classify(fmt.Errorf("dial: %w", backoff.RetryAfter(err, time.Minute))))
	}
}

func TestTheOutermostRetryAfterCounts(t *testing.T) {
	err := backoff.RetryAfter(backoff.RetryAfter(tardy(3*time.Second), 2*time.Second), time.Second)
	require.Equal(t, time.Second, backoff.Classify(err).RetryAfter)
}
