package budget

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// LoginError reports that no login may be made now. Its verdict is ClassRetry and Local.
type LoginError struct {
	Next time.Time // when the next login may be made
	Err  error     // a damaged record, a failed store, or why the last session ended; or nil

	now      func() time.Time // the clock of Next, or nil for time.Now
	unstored bool             // the store has failed; the budget may allow the login
}

func (e *LoginError) Error() string {
	if e.unstored {
		return fmt.Sprintf("login not allowed, because it cannot be stored: %v", e.Err)
	}
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

// RetryAfter returns the time until Next, on the clock of LoginsOptions.Now, and whether it is positive.
func (e *LoginError) RetryAfter() (time.Duration, bool) {
	now := time.Now
	if e.now != nil {
		now = e.now
	}
	wait := e.Next.Sub(now())
	return wait, wait > 0
}
