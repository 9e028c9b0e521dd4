package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// errElapsed is the cause with which MaxElapsed ends a context.
var errElapsed = fmt.Errorf("%w: MaxElapsed is over", backoff.ErrGaveUp)

// Error reports why there was no further attempt.
type Error struct {
	Cause error // backoff.ErrGaveUp, ErrNoBudget, or the cause of the context
	Err   error // error of the last attempt that failed by itself, or nil
	Tries int   // number of calls of the operation

	began   time.Time
	elapsed time.Duration // total time
	ended   error         // the Err of the context, if the Cause is the context's
	late    bool          // MaxElapsed is over

	limit time.Duration // MaxElapsed, if the next wait would have lasted until then; else 0
}

// Error returns text such as "gave up after 8 tries in 2m7s: connection refused". It also says if the next
// wait was too long for MaxElapsed.
func (e *Error) Error() string {
	tries := "tries"
	if e.Tries == 1 {
		tries = "try"
	}
	text := fmt.Sprintf("%v after %d %s in %v", e.Cause, e.Tries, tries, e.elapsed.Round(time.Millisecond))
	if e.limit > 0 {
		text += fmt.Sprintf(", because the next wait would not end within MaxElapsed (%v)", e.limit)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Cause and, if non-nil, Err.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.Err}
}

// Is reports whether target is the Err of the context that ended the operation, whatever its cause.
func (e *Error) Is(target error) bool { return e.ended != nil && e.ended == target }

// Timeout reports whether time ran out: a deadline, MaxElapsed, or the limit on the last attempt.
func (e *Error) Timeout() bool {
	return e.late || e.ended == context.DeadlineExceeded || timedOut(e.Err)
}

// timedOut reports whether err, or anything that it wraps, has a method Timeout that returns true.
func timedOut(err error) bool {
	if t, ok := err.(interface{ Timeout() bool }); ok && t.Timeout() {
		return true
	}
	if hidden, ok := err.(interface{ As(any) bool }); ok {
		var t interface{ Timeout() bool }
		if hidden.As(&t) && t.Timeout() {
			return true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return timedOut(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), timedOut)
	}
	return false
}

// note keeps err, unless err only says that ctx has ended.
func (e *Error) note(ctx context.Context, err error) {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
		e.Err = err
	}
}

// because completes e with its cause, and returns it.
func (e *Error) because(cause error) error {
	e.Cause = cause
	e.elapsed = time.Since(e.began)
	return e
}

// end completes e with the cause of ctx, which has ended, and returns it.
func (e *Error) end(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == errElapsed {
		return e.elapse()
	}
	e.ended = ctx.Err()
	return e.because(cause)
}

// elapse completes e because MaxElapsed is over, and returns it.
func (e *Error) elapse() error {
	e.late = true
	return e.because(backoff.ErrGaveUp)
}
