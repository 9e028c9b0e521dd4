package backoff

import (
	"context"
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

// Retrier retries operations. Its zero value is ready for use. It must not be
// changed while in use, and may be used by several goroutines at once, if its
// fields may.
type Retrier struct {
	Policy     Policy                              // default Default()
	MaxElapsed time.Duration                       // limit on all of Do: tries, waits and the gate; default, and negative: none
	Classify   func(err error) Verdict             // default Classify
	Budget     Budget                              // asked before each try, ahead of the wait; default: all are admitted
	Gate       Gate                                // passed before each try, after the wait; default: none
	Host       string                              // the name under which the Gate is asked
	Rand       rand.Source                         // default: that of Rand(), safe for all goroutines
	Notify     func(err error, wait time.Duration) // called before each wait, on the goroutine of Do; default: nobody
}

// Do calls op until it returns nil, and returns nil then. Between two calls it
// waits what the server told us to wait (the verdict's RetryAfter) and then
// what the policy says, and then at the gate. The context that op gets is ctx
// with a [Try], and ends with ctx or with MaxElapsed only: a time limit on one try
// is op's own affair. Do otherwise returns
//
//   - what op returned, if its verdict is ClassStop; without the mark of
//     [Permanent], if nothing is wrapped around that;
//   - a [*RetryError] with [ErrGaveUp], if the policy gives up, or if MaxElapsed is
//     over. A wait that would last until then or longer is not begun;
//   - a [*RetryError] with [ErrNoBudget], if the budget refuses the next try;
//   - a [*RetryError] with context.Cause(ctx), if ctx ends, during op or a wait.
//     Op is not called at all if ctx has ended before.
//
// A panic and a runtime.Goexit, of op or of any function and value in r, go on
// unchanged. For the Budget and the Gate such a try says nothing about the server, as
// one that was cancelled ([ClassStop]). A try that was admitted but not begun, since
// ctx ended in the wait or the gate returned an error, costs the Budget nothing.
func (r *Retrier) Do(ctx context.Context, op func(context.Context) error) error {
	o := r.withDefaults()
	if o.MaxElapsed > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.MaxElapsed, errElapsed)
		defer cancel()
	}
	run := retrying{Retrier: o, random: rand.New(o.Rand), failed: &RetryError{began: time.Now()}}
	return run.do(ctx, op)
}

// withDefaults returns a copy of r in which nothing is missing.
func (r *Retrier) withDefaults() *Retrier {
	o := *r
	if o.Classify == nil {
		o.Classify = Classify
	}
	if o.Budget == nil {
		o.Budget = unlimited{}
	}
	if o.Gate == nil {
		o.Gate = open{}
	}
	if o.Rand == nil {
		o.Rand = global{}
	}
	if o.Notify == nil {
		o.Notify = func(error, time.Duration) {}
	}
	return &o
}

// retrying is one call of Do. The Retrier has its defaults.
type retrying struct {
	*Retrier
	random  *rand.Rand
	outage  Outage
	step    Step
	failed  *RetryError
	done    func(Verdict) // of the Budget, for the try that it has admitted; nil: none
	outcome Verdict       // of that try, as far as it is known
}

func (r *retrying) do(ctx context.Context, op func(context.Context) error) error {
	r.outage.Begin(r.failed.began)
	if ctx.Err() != nil {
		return r.failed.end(ctx)
	}
	defer r.settle() // if ctx ends in a wait, or if a function of the user's panics or calls runtime.Goexit
	if !r.admit(Verdict{}) {
		return r.failed
	}
	for {
		v, err := r.try(ctx, op)
		r.settle()
		if err == nil {
			return nil
		}
		r.failed.note(ctx, err)
		if ctx.Err() != nil {
			return r.failed.end(ctx)
		}
		if v.Class == ClassStop {
			return unmark(err)
		}
		wait, ok := r.next(v)
		if !ok {
			return r.failed
		}
		r.Notify(err, wait)
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return r.failed.end(ctx)
		}
	}
}

// admit asks the Budget for a try, and reports whether it may be made. If not, failed
// says so.
func (r *retrying) admit(last Verdict) bool {
	done, ok := r.Budget.Admit(last)
	if !ok {
		r.failed.because(ErrNoBudget)
		return false
	}
	r.done, r.outcome = done, Verdict{Class: ClassStop, Skipped: true}
	return true
}

// settle reports the outcome of the admitted try to the Budget, once.
func (r *retrying) settle() {
	if done := r.done; done != nil {
		r.done = nil
		done(r.outcome)
	}
}

// try calls op behind the gate, and returns its verdict and its error. If op does not
// return, its outcome stays ClassStop, because that says nothing about the server. If
// the gate returns an error, the outcome stays Skipped.
func (r *retrying) try(ctx context.Context, op func(context.Context) error) (Verdict, error) {
	done, err := r.Gate.Acquire(ctx, r.Host)
	if err != nil {
		return r.judge(ctx, err), fmt.Errorf("gate %s: %w", r.Host, err)
	}
	r.outcome.Skipped = false
	defer func() { done(r.outcome) }()
	r.failed.Tries++
	err = op(WithTry(ctx, r.outage.Try(r.step)))
	r.outcome = r.judge(ctx, err)
	return r.outcome, err
}

// next draws the wait after v and has the try after it admitted. Without ok, failed
// says why there is none.
func (r *retrying) next(v Verdict) (wait time.Duration, ok bool) {
	if r.step, ok = r.outage.Next(r.Policy, v, time.Now(), r.random); !ok {
		r.failed.because(ErrGaveUp)
		return 0, false
	}
	wait = r.outage.Attempt().Verdict.RetryAfter + r.step.Wait
	if r.MaxElapsed > 0 && wait >= r.MaxElapsed-time.Since(r.failed.began) {
		r.failed.elapse()
		return 0, false
	}
	return wait, r.admit(v)
}

// judge is Classify, made total: an error is never a success, and nobody is asked
// about the end of ctx.
func (r *Retrier) judge(ctx context.Context, err error) Verdict {
	switch {
	case err == nil:
		return Verdict{}
	case ctx.Err() == context.Canceled:
		return Verdict{Class: ClassStop}
	case ctx.Err() != nil:
		return Verdict{Class: ClassOverload}
	}
	v := r.Classify(err)
	if v.Class == ClassOK {
		v.Class = ClassRetry
	}
	return v.clamped()
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
