package retry_test

import (
	"context"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// timeBounds have, for each option that is a time, whether a Loop with n ends until k.
var timeBounds = map[string]func(n, k time.Duration) bool{
	"MaxElapsed, of a try": func(n, k time.Duration) bool {
		return ended(k, &retry.Loop{MaxElapsed: n}, hang)
	},
	"MaxElapsed, at the gate": func(n, k time.Duration) bool {
		return ended(k, &retry.Loop{MaxElapsed: n, Gate: shut{}}, hang)
	},
	// A wait that would last until then does not begin, so that Do ends before it.
	"MaxElapsed": func(n, k time.Duration) bool {
		policy := &backoff.Exponential{Base: k, Cap: k, Jitter: backoff.JitterNone}
		op, calls := failing(io.EOF, 1)
		_ = (&retry.Loop{MaxElapsed: n, Policy: policy}).Do(ctx, op)
		return *calls == 1
	},
	"MaxElapsed, of RetryAfter": func(n, k time.Duration) bool {
		policy := &backoff.Exponential{Base: -1}
		op, calls := failing(backoff.RetryAfter(io.EOF, k), 1)
		_ = (&retry.Loop{MaxElapsed: n, Policy: policy}).Do(ctx, op)
		return *calls == 1
	},
}

// What happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	const n = 3 * time.Second
	for name, happened := range timeBounds {
		t.Run(name, func(t *testing.T) {
			for k := n - 1; k <= n+1; k++ {
				synctest.Test(t, func(t *testing.T) {
					require.Equal(t, k >= n, happened(n, k), "after %v of %v", k, n)
				})
			}
		})
	}
}

// ended reports whether Do has ended after k. Otherwise it cancels Do.
func ended(k time.Duration, l *retry.Loop, op func(context.Context) error) (ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Do(ctx, op)
	}()
	time.Sleep(k)
	synctest.Wait()
	select {
	case <-done:
		ended = true
	default:
	}
	cancel()
	<-done
	return ended
}

// shut is a gate that admits no try.
type shut struct{}

func (shut) Acquire(ctx context.Context, _ string) (func(backoff.Verdict), error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[retry.Loop]()}
	require.Empty(t, numeric.WithoutRow(options, timeBounds))
}
