package retry_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// allowance is a Budget of so many retries, for all operations that share it.
type allowance struct{ left atomic.Int64 }

func (a *allowance) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	if last.Class == backoff.ClassOK { // a first try
		return func(backoff.Verdict) {}, true
	}
	if a.left.Add(-1) < 0 {
		return nil, false
	}
	return func(v backoff.Verdict) {
		if v.Skipped { // the try was never begun
			a.left.Add(1)
		}
	}, true
}

// A Budget bounds the tries of many operations together. Package budget has three of them.
func ExampleBudget() {
	shared := &allowance{}
	shared.left.Store(1)
	r := retry.Loop{Budget: shared, Policy: &backoff.Exponential{Base: time.Millisecond}}
	for range 2 {
		err := r.Do(context.Background(), func(context.Context) error { return errors.New("connection refused") })
		if e, ok := errors.AsType[*retry.Error](err); ok {
			fmt.Println(e.Tries, errors.Is(err, retry.ErrNoBudget))
		}
	}
	// Output:
	// 2 true
	// 1 true
}
