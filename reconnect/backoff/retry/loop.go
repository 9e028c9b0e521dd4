package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Do calls op until it succeeds or no further attempt is made. It is [Loop.Do] of a Loop with only a Policy,
// and generalizes connect_retry (W. Richard Stevens and Stephen A. Rago, "Advanced Programming in the UNIX
// Environment", section 16.4). A nil p means [backoff.Default].
func Do(ctx context.Context, p backoff.Policy, op func(context.Context) error) error {
	return (&Loop{Policy: p}).Do(ctx, op)
}

// Loop retries operations. The zero value is ready to use. A Loop is safe for concurrent use if its fields
// are, and must not be modified while in use.
type Loop struct {
	Policy     backoff.Policy                      // default backoff.Default()
	MaxElapsed time.Duration                       // limit on all of Do; default and negative mean none
	Classify   func(err error) backoff.Verdict     // judges each error; default backoff.Classify
	Budget     Budget                              // admits each attempt, before its wait; default: all
	Gate       backoff.Gate                        // holds each attempt, after its wait; default: none
	Host       string                              // host passed to Gate
	Rand       rand.Source                         // default: that of backoff.Rand(), safe for concurrent use
	OnWait     func(err error, wait time.Duration) // called before each wait, on the goroutine of Do
	Kick       <-chan struct{}                     // a value ends a wait early, but not its Retry-After
}

// Do calls op until it returns nil, and then returns nil. Between calls Do waits as long as the server asked
// (the verdict's RetryAfter), then as long as the policy says, and then at the gate. op gets ctx with a
// [backoff.Attempt]. That context is done only with ctx or MaxElapsed, so op must limit the time of an attempt
// itself. Otherwise Do returns
//
//   - the error of op if its verdict is ClassStop, without the marks around it, such as [backoff.Permanent];
//   - an [*Error] with [backoff.ErrGaveUp] if the policy gives up or MaxElapsed is over. A wait that would last
//     until then does not begin;
//   - an [*Error] with [ErrNoBudget] if the budget rejects the next attempt;
//   - an [*Error] with context.Cause(ctx) if ctx is done. If it was done before, Do does not call op.
//
// A panic or runtime.Goexit in op or in a field of l is passed on. The Budget and the Gate then get ClassStop,
// as for a canceled attempt. If an admitted attempt does not begin, its verdict is Skipped too: see [Budget].
func (l *Loop) Do(ctx context.Context, op func(context.Context) error) error {
	o := l.withDefaults()
	if o.MaxElapsed > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.MaxElapsed, errElapsed)
		defer cancel()
	}
	run := retrying{Loop: o, random: rand.New(o.Rand), failed: &Error{began: time.Now()}}
	return run.do(ctx, op)
}

// withDefaults returns a copy of l in which only Policy, Budget and Gate may be nil.
func (l *Loop) withDefaults() *Loop {
	o := *l
	if o.Classify == nil {
		o.Classify = backoff.Classify
	}
	if o.Rand == nil {
		o.Rand = backoff.Rand()
	}
	if o.OnWait == nil {
		o.OnWait = func(error, time.Duration) {}
	}
	return &o
}

// retrying is one call of Do. Its Loop has the defaults.
type retrying struct {
	*Loop
	random  *rand.Rand
	outage  schedule.Outage
	step    backoff.Step
	failed  *Error
	done    func(backoff.Verdict) // of the Budget, for the try that it has admitted; nil: none
	outcome backoff.Verdict       // of that try, as far as it is known

	answered bool // the error of op is an answer of the server that no further try can change
}

func (r *retrying) do(ctx context.Context, op func(context.Context) error) error {
	r.outage.Begin(r.failed.began)
	if ctx.Err() != nil {
		return r.failed.end(ctx)
	}
	defer r.settle() // when ctx ends in a wait, and when a function of the user does not return
	if !r.admit(backoff.Verdict{}) {
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
		if v.Class == backoff.ClassStop {
			return unmark(err)
		}
		wait, ok := r.next(v)
		if !ok {
			return r.failed
		}
		r.OnWait(err, wait)
		sleep(ctx, wait-r.step.Wait, nil)
		sleep(ctx, r.step.Wait, r.Kick)
		if ctx.Err() != nil {
			return r.failed.end(ctx)
		}
	}
}

// admit asks the Budget for a try after last, and reports whether the try may be made.
// If not, it completes failed.
func (r *retrying) admit(last backoff.Verdict) bool {
	if r.Budget == nil {
		return true
	}
	done, ok := r.Budget.Admit(last)
	if !ok {
		r.failed.because(ErrNoBudget)
		return false
	}
	r.done, r.answered = done, false
	r.outcome = backoff.Verdict{Class: backoff.ClassStop, Skipped: true}
	return true
}

// settle reports the outcome of the admitted try to the Budget, once.
func (r *retrying) settle() {
	if done := r.done; done != nil {
		r.done = nil
		v := r.outcome.OfServer()
		if r.answered {
			v = backoff.Verdict{}
		}
		done(v)
	}
}

// try calls op once the gate lets it, and returns its verdict and its error. If op does
// not return, its outcome is ClassStop; if the gate returns an error, it stays Skipped.
func (r *retrying) try(ctx context.Context, op func(context.Context) error) (backoff.Verdict, error) {
	if r.Gate != nil {
		done, err := r.Gate.Acquire(ctx, r.Host)
		if err != nil {
			return r.verdictOf(ctx, err), fmt.Errorf("gate %s: %w", r.Host, err)
		}
		defer func() { done(r.outcome.OfServer()) }()
	}
	r.outcome = backoff.Verdict{Class: backoff.ClassStop}
	r.failed.Tries++
	err := op(backoff.WithAttempt(ctx, r.outage.Attempt(r.step)))
	r.outcome = r.verdictOf(ctx, err)
	r.answered = r.outcome.Class == backoff.ClassStop && !r.outcome.Local && ctx.Err() == nil
	return r.outcome, err
}

// next draws the wait after v, and asks the Budget for the try after that. It completes
// failed and reports false if there is none.
func (r *retrying) next(v backoff.Verdict) (wait time.Duration, ok bool) {
	if r.step, ok = r.outage.Next(r.Policy, v, time.Now(), r.random); !ok {
		r.failed.because(backoff.ErrGaveUp)
		return 0, false
	}
	wait = r.outage.History().Verdict.RetryAfter + r.step.Wait
	if r.MaxElapsed > 0 && wait >= r.MaxElapsed-time.Since(r.failed.began) {
		r.failed.limit = r.MaxElapsed
		r.failed.elapse()
		return 0, false
	}
	return wait, r.admit(v)
}

// verdictOf returns the verdict on err. It does not ask Classify about the end of ctx, and an
// error that Classify takes for a success is ClassRetry.
func (l *Loop) verdictOf(ctx context.Context, err error) backoff.Verdict {
	switch {
	case err == nil:
		return backoff.Verdict{}
	case ctx.Err() == context.Canceled:
		return backoff.Verdict{Class: backoff.ClassStop}
	case ctx.Err() != nil:
		return backoff.Verdict{Class: backoff.ClassOverload}
	}
	v := l.Classify(err)
	if v.Class == backoff.ClassOK {
		v.Class = backoff.ClassRetry
	}
	return v.Bounded()
}

// unmark returns err without the marks of package backoff that are outermost.
func unmark(err error) error {
	for {
		m, ok := err.(interface{ Unmark() error })
		if !ok {
			return err
		}
		err = m.Unmark()
	}
}

// sleep waits for d, but no longer than until ctx is done or kick delivers. kick may be nil.
func sleep(ctx context.Context, d time.Duration, kick <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-kick:
	case <-ctx.Done():
	}
}

// Budget decides whether an attempt may be made, for all operations on one server: it is a retry budget or a
// breaker. It must be safe for concurrent use, and must not block.
//
// A [Loop] asks it before the first attempt, and before the wait for each further one: after reporting the
// outcome of the previous attempt, and only if the policy has not given up.
type Budget interface {
	// Admit decides about an attempt. last is the verdict on the previous one, or ClassOK for a first attempt.
	// If ok is false the operation ends with [ErrNoBudget]. Otherwise done is called exactly once, with the
	// outcome:
	//
	//   - ClassOK: the attempt succeeded, or its error has the verdict ClassStop and is not Local: the server
	//     responded, such as with a 404 that op marks as Permanent.
	//   - ClassStop: the attempt does not count, because it was canceled or panicked, or its error is Local. If
	//     Skipped, it was not begun, because it was canceled in its wait or at the gate, or the gate returned
	//     an error. Then done releases what Admit took.
	//   - All other classes: the attempt failed. If a deadline ended it, it is ClassOverload.
	Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool)
}

// ErrNoBudget is the Cause of an [Error] if the [Budget] rejected an attempt.
var ErrNoBudget = errors.New("not admitted by the budget")
