package backoff_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// giveUp is a policy that gives up.
type giveUp struct{}

func (giveUp) Next(backoff.Attempt, *rand.Rand) (backoff.Step, bool) { return backoff.Step{}, false }

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestMaxElapsedCutsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := (&backoff.Retrier{MaxElapsed: time.Minute}).Do(ctx, hang)
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
			err := (&backoff.Retrier{Policy: doubling, MaxElapsed: limit}).Do(ctx, op)
			require.EqualError(t, err, "gave up after 3 tries in 3s: EOF")
		})
	}
	synctest.Test(t, func(t *testing.T) {
		op, _ := failing(io.EOF, 99)
		err := (&backoff.Retrier{Policy: doubling, MaxElapsed: 7*time.Second + 1}).Do(ctx, op)
		require.EqualError(t, err, "gave up after 4 tries in 7s: EOF")
	})
}

func TestMaxElapsedCountsWhatTheServerToldUsToWait(t *testing.T) {
	op, _ := failing(backoff.RetryAfter(io.EOF, time.Minute), 99)
	err := (&backoff.Retrier{Policy: doubling, MaxElapsed: time.Minute}).Do(ctx, op)
	require.EqualError(t, err, "gave up after 1 try in 0s: EOF")
}

func TestANegativeMaxElapsedIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op, calls := failing(io.EOF, 20)
		require.NoError(t, (&backoff.Retrier{MaxElapsed: -1}).Do(ctx, op))
		require.Equal(t, 21, *calls)
	})
}

func TestARetryErrorIsTheContextsErrorWhateverItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(io.ErrClosedPipe)
	err := backoff.Retry(ctx, nil, hang)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestTimeoutSaysWhetherTimeRanOut(t *testing.T) {
	past, cancel := context.WithDeadlineCause(ctx, start.AddDate(-9, 0, 0), io.EOF)
	defer cancel()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		r    backoff.Retrier
		err  error
		want bool
	}{
		"deadline":   {past, backoff.Retrier{}, nil, true},
		"MaxElapsed": {ctx, backoff.Retrier{Policy: doubling, MaxElapsed: time.Second}, io.EOF, true},
		"last try":   {ctx, backoff.Retrier{Policy: giveUp{}}, os.ErrDeadlineExceeded, true},
		"refused":    {ctx, backoff.Retrier{Policy: giveUp{}}, io.EOF, false},
		"cancelled":  {gone, backoff.Retrier{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.r.Do(c.ctx, func(context.Context) error { return c.err })
			var e *backoff.RetryError
			require.True(t, errors.As(err, &e))
			require.Equal(t, c.want, e.Timeout())
		})
	}
}
