package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

func ExampleDo() {
	calls := 0
	policy := backoff.Limit(&backoff.Exponential{Base: time.Millisecond}, 5, 0)
	err := retry.Do(context.Background(), policy, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("connection refused")
		}
		return nil
	})
	fmt.Println(calls, err)
	// Output: 3 <nil>
}

// A Loop repeats an operation under its limits, and says so.
func ExampleLoop() {
	r := &retry.Loop{
		Policy:     &backoff.Exponential{Base: time.Millisecond}, // default: from [0, 2 s), then growing
		MaxElapsed: time.Minute,                                  // default: none
		OnWait:     func(err error, _ time.Duration) { fmt.Println("again after:", err) },
	}
	err := r.Do(context.Background(), func(ctx context.Context) error {
		if backoff.AttemptFrom(ctx).Number < 3 {
			return errors.New("connection refused")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// again after: connection refused
	// again after: connection refused
	// <nil>
}
