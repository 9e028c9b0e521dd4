package budget_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

// A gate lets so many dials to a host go out at a time. reconnect.RunOptions and
// dialer.Dialer have a field for it; this is what they do with it.
func ExampleGate() {
	gate, err := budget.NewGate(&budget.GateOptions{Concurrent: 1}) // default: 16
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, host := context.Background(), "feed.example:443"
	done, err := gate.Acquire(ctx, host)
	fmt.Println(err)

	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = gate.Acquire(soon, host) // the second dial waits, and its context ends
	fmt.Println(err)

	done(backoff.Classify(errors.New("connection refused")))
	fmt.Println("down:", gate.Status(host).Down)
	// Output:
	// <nil>
	// context deadline exceeded
	// down: true
}

// A retry budget is shared by all operations on one server. When it is used up an operation
// gets its first try and no other, so that a server that is down is not flooded.
func ExampleBudget() {
	b, err := budget.New(&budget.Options{Capacity: 200}) // two retries; default: 30
	if err != nil {
		fmt.Println(err)
		return
	}
	r := retry.Loop{Budget: b, Policy: &backoff.Exponential{Base: time.Millisecond}}
	for range 2 {
		err := r.Do(context.Background(), func(context.Context) error { return errors.New("connection refused") })
		if e, ok := errors.AsType[*retry.Error](err); ok {
			fmt.Println("tries:", e.Tries, e.Cause)
		}
	}
	fmt.Println("left:", b.Tokens())
	// Output:
	// tries: 3 not admitted by the budget
	// tries: 1 not admitted by the budget
	// left: 0
}

// The bucket of gRPC's retry throttling (gRFC A6), in thousandths of its tokens: a retry needs more than half of
// them, and each failure takes one.
func ExampleOptions() {
	b, err := budget.New(&budget.Options{
		Capacity: 10_000, Reserve: 5000,
		Failure: 1000, First: 100, Again: 100,
		Retry: -1, // a retry costs nothing
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for failures := 0; ; failures++ {
		done, ok := b.Admit(backoff.Verdict{Class: backoff.ClassRetry}) // a retry
		if !ok {
			fmt.Println("refused after", failures, "failures")
			return
		}
		done(backoff.Verdict{Class: backoff.ClassRetry})
	}
	// Output: refused after 5 failures
}

// A circuit breaker opens when too many tries have failed, and lets one try through after a
// while.
func ExampleBreaker() {
	now := time.Now()
	b, err := budget.NewBreaker(&budget.BreakerOptions{
		MinSamples: 2, HalfOpen: 1, Open: time.Second, // default: 20 tries, 3 trials, 5 s
		Now: func() time.Time { return now }, // so that the example need not wait: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		done, ok := b.Admit(backoff.Verdict{}) // a retry.Loop does this
		if ok {
			done(backoff.Classify(errors.New("connection refused")))
		}
		fmt.Println(ok, b.State() == budget.BreakerOpen)
	}
	now = now.Add(time.Second)
	done, ok := b.Admit(backoff.Verdict{})
	done(backoff.Verdict{}) // success
	fmt.Println(ok, b.State() == budget.BreakerClosed)
	// Output:
	// true false
	// true true
	// false true
	// true true
}

// A retry breaker refuses retries, and never a first try, while half of the recent tries
// have failed.
func ExampleBreaker_retries() {
	b, err := budget.NewBreaker(&budget.BreakerOptions{Open: -1, Share: 0.5, MinSamples: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, failed := backoff.Verdict{}, backoff.Verdict{Class: backoff.ClassRetry}
	for _, outcome := range []backoff.Verdict{{}, {}, failed, failed} {
		done, _ := b.Admit(first)
		done(outcome)
		done, retry := b.Admit(failed)
		if retry { // and is not made in this example
			done(backoff.Verdict{Class: backoff.ClassStop, Skipped: true})
		}
		fmt.Println(outcome.Class, "then a retry passes:", retry)
	}
	// Output:
	// ok then a retry passes: true
	// ok then a retry passes: true
	// retry then a retry passes: true
	// retry then a retry passes: false
}
