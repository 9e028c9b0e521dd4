package budget_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// quota is a limiter that lets through as many dials as it has room for, and no more. A
// real program takes a rate.Limiter of golang.org/x/time/rate, or one of its own that a
// whole fleet shares.
type quota chan struct{}

func (q quota) Wait(ctx context.Context) error {
	select {
	case q <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Limited makes a gate of any limiter. It is one for all hosts together.
func ExampleLimited() {
	gate := budget.Limited{Limiter: make(quota, 1)}
	_, err := gate.Acquire(context.Background(), "a.example:443")
	fmt.Println(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = gate.Acquire(ctx, "b.example:443")
	fmt.Println(err)
	// Output:
	// <nil>
	// context deadline exceeded
}
