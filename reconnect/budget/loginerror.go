package budget

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// LoginError says that no login may be made now. Its verdict is ClassRetry and Local, because the server has
// nothing to do with it.
type LoginError struct {
	Next time.Time // when the next login may be made
	Err  error     // what is behind it: a damaged record, a store that failed, or why the last session ended; nil: nothing
}

func (e *LoginError) Error() string {
	text := fmt.Sprintf("the budget allows no login before %s", e.Next.UTC().Format(time.RFC3339))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }

// Reason returns [backoff.ReasonLogins].
func (e *LoginError) Reason() backoff.Reason { return backoff.ReasonLogins }

// Verdict returns the verdict for [backoff.Classify].
func (e *LoginError) Verdict() backoff.Verdict {
	return backoff.Verdict{Class: backoff.ClassRetry, Local: true}
}

// RetryAfter returns how long it is until Next, so that the next try waits for it, and whether that is still
// to come.
func (e *LoginError) RetryAfter() (time.Duration, bool) {
	wait := time.Until(e.Next)
	return wait, wait > 0
}
