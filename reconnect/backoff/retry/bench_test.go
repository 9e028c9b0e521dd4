package retry_test

import (
	"context"
	"io"
	"testing"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// An operation that succeeds at once, and one that fails three times without a wait.
func BenchmarkLoop(b *testing.B) {
	r := &retry.Loop{Policy: backoff.Limit(&backoff.Exponential{Base: -1}, 2, 0)}
	for name, err := range map[string]error{"succeeds": nil, "fails": io.EOF} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = r.Do(ctx, func(context.Context) error { return err })
			}
		})
	}
}
