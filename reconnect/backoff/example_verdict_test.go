package backoff_test

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Quota is an error that judges itself: Classify finds its verdict.
type Quota struct {
	Wait time.Duration // until there is a new one
}

func (q Quota) Error() string { return "quota used up" }

func (q Quota) Verdict() backoff.Verdict {
	return backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: q.Wait}
}

// An error of your own may judge itself.
func ExampleVerdict() {
	v := backoff.Classify(fmt.Errorf("login: %w", Quota{Wait: time.Minute}))
	fmt.Println(v.Class, v.RetryAfter)
	// Output: overload 1m0s
}
