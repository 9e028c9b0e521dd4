package backoff

import "errors"

// Budget decides whether a try may be made, for all operations on one server: it is a
// retry budget, a retry breaker or a circuit breaker. It is for operations, because
// their successes refill it; a connection that is only reconnected has none. It must be
// safe for concurrent use, and must not wait.
//
// A [Retrier] asks it before each try of an operation. Before a later try it does so when
// the outcome of the try before has been reported and the policy wants to go on, but
// ahead of the wait, so that no operation waits in order to be refused.
type Budget interface {
	// Admit decides about one try. Last is the verdict on the try that it repeats, or
	// ClassOK for a first try. Without ok the operation ends with [ErrNoBudget], and
	// done is not used. With ok, done is called exactly once, with the outcome:
	//
	//   - ClassOK: the try succeeded.
	//   - ClassStop: the try says nothing about the server, and counts neither as a
	//     success nor as a failure. It was cancelled or panicked on its way, or would
	//     have failed anywhere. If the verdict is Skipped, the try was not even begun:
	//     it was cancelled in its wait or at the gate, or the gate returned an error.
	//     Then done gives back what Admit took.
	//   - All other classes: the try failed. A try that a deadline cut is ClassOverload.
	Admit(last Verdict) (done func(Verdict), ok bool)
}

// ErrNoBudget is the Cause of a [RetryError] if the [Budget] refused a try.
var ErrNoBudget = errors.New("not admitted by the budget")

// unlimited is a Budget that admits all.
type unlimited struct{}

func (unlimited) Admit(Verdict) (func(Verdict), bool) { return ignore, true }

func ignore(Verdict) {}
