package backoff

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrGaveUp is what a [RetryError] unwraps to if the policy gave up, or MaxElapsed
// was over.
var ErrGaveUp = errors.New("gave up")

// errElapsed is the cause with which MaxElapsed ends a context.
var errElapsed = fmt.Errorf("%w: MaxElapsed is over", ErrGaveUp)

// RetryError says why there was no further try, and what went wrong in the
// last one. It unwraps to both, and if a context ended it, it is that context's
// Err as well, whatever the cause was.
type RetryError struct {
	Cause   error         // ErrGaveUp, ErrNoBudget, or the cause with which the context ended
	Err     error         // of the last try that failed by itself; nil: none did
	Tries   int           // how many calls there were
	Elapsed time.Duration // since the start

	began time.Time
	ended error // what the context's Err was, if that was it
	late  bool  // MaxElapsed was it
}

// Error returns, for instance, "gave up after 8 tries in 2m7s: connection refused".
func (e *RetryError) Error() string {
	tries := "tries"
	if e.Tries == 1 {
		tries = "try"
	}
	text := fmt.Sprintf("%v after %d %s in %v", e.Cause, e.Tries, tries, e.Elapsed.Round(time.Millisecond))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Cause and, if there is one, Err.
func (e *RetryError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Err}
}

// Is reports whether target is the Err of the context that ended it.
func (e *RetryError) Is(target error) bool { return e.ended != nil && e.ended == target }

// Timeout reports whether it was time that ran out: a deadline, MaxElapsed, or
// the limit on the last try.
func (e *RetryError) Timeout() bool {
	slow := func(t interface{ Timeout() bool }) bool { return t.Timeout() }
	return e.late || e.ended == context.DeadlineExceeded || find(e.Err, slow)
}

// note keeps err, unless it only says that ctx has ended.
func (e *RetryError) note(ctx context.Context, err error) {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
		e.Err = err
	}
}

// because completes e, and returns it.
func (e *RetryError) because(cause error) error {
	e.Cause = cause
	e.Elapsed = time.Since(e.began)
	return e
}

// end is because of ctx.
func (e *RetryError) end(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == errElapsed {
		return e.elapse()
	}
	e.ended = ctx.Err()
	return e.because(cause)
}

// elapse is because of MaxElapsed.
func (e *RetryError) elapse() error {
	e.late = true
	return e.because(ErrGaveUp)
}
