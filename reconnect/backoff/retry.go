package backoff

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Retry calls op until it succeeds, ctx ends, its error is one that no further
// try can mend, or p gives up: connect_retry (Stevens and Rago, APUE, 16.4) for
// any operation. It is [Retrier.Do] of a Retrier with nothing but that policy;
// a nil p is [Default].
func Retry(ctx context.Context, p Policy, op func(context.Context) error) error {
	return (&Retrier{Policy: p}).Do(ctx, op)
}

// ErrGaveUp is what a [RetryError] unwraps to if the policy gave up.
var ErrGaveUp = errors.New("gave up")

// Retrier retries operations. Its zero value is ready for use. It must not be
// changed while in use, and may be used by several goroutines at once, if its
// fields may.
type Retrier struct {
	Policy   Policy                              // default Default()
	Classify func(err error) Verdict             // default Classify
	Rand     rand.Source                         // default: that of Rand(), safe for all goroutines
	Notify   func(err error, wait time.Duration) // called before each wait, on the goroutine of Do; default: nobody
}

// Do calls op until it returns nil, and returns nil then. Between two calls it
// waits what the server told us to wait (the verdict's RetryAfter) and then
// what the policy says. The context that op gets is ctx with a [Try], and ends
// with ctx only: a time limit on one try is op's own affair. Do otherwise returns
//
//   - what op returned, if its verdict is ClassStop; without the mark of
//     [Permanent], if nothing is wrapped around that;
//   - a [*RetryError] with [ErrGaveUp], if the policy gives up;
//   - a [*RetryError] with context.Cause(ctx), if ctx ends, during op or a wait.
//     Op is not called at all if ctx has ended before.
func (r *Retrier) Do(ctx context.Context, op func(context.Context) error) error {
	classify, random := r.Classify, Rand()
	if classify == nil {
		classify = Classify
	}
	if r.Rand != nil {
		random = rand.New(r.Rand)
	}
	var (
		outage Outage
		step   Step
		failed = RetryError{began: time.Now()}
	)
	outage.Begin(failed.began)
	for ctx.Err() == nil {
		err := op(WithTry(ctx, outage.Try(step)))
		if err == nil {
			return nil
		}
		failed.note(ctx, err)
		if ctx.Err() != nil {
			break
		}
		v := classify(err)
		if v.Class == ClassStop {
			return unmark(err)
		}
		var ok bool
		if step, ok = outage.Next(r.Policy, v, time.Now(), random); !ok {
			return failed.because(ErrGaveUp)
		}
		wait := outage.Attempt().Verdict.RetryAfter + step.Wait
		if r.Notify != nil {
			r.Notify(err, wait)
		}
		sleep(ctx, wait)
	}
	return failed.because(context.Cause(ctx))
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// RetryError says why there was no further try, and what went wrong in the
// last one. It unwraps to both.
type RetryError struct {
	Cause   error         // ErrGaveUp, or the cause with which the context ended
	Err     error         // of the last try that failed by itself; nil: none did
	Tries   int           // how many calls there were
	Elapsed time.Duration // since the start

	began time.Time
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

// note keeps err, unless it only says that ctx has ended.
func (e *RetryError) note(ctx context.Context, err error) {
	e.Tries++
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
		e.Err = err
	}
}

func (e *RetryError) because(cause error) error {
	e.Cause = cause
	e.Elapsed = time.Since(e.began)
	return e
}
