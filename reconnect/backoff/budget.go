package backoff

import "errors"

// Budget is who else has a say in whether a try is made: a retry budget, a retry
// breaker or a circuit breaker, shared by the operations on one server. It is
// meant for operations, whose successes fill it again; a connection that is only
// reconnected has none. It must be safe for concurrent use, and must not wait.
//
// A [Retrier] asks it before each try of an operation: before each later one once the
// outcome of the one before has been told and the policy wants to go on, but
// ahead of the wait, so that nobody waits in order to be refused.
type Budget interface {
	// Admit asks for leave to make one try. Last is the verdict on the try that it
	// repeats, or ClassOK if it is the first one. Without ok the operation ends with
	// [ErrNoBudget], and done is not used. With ok, done is called exactly once, with
	// how the try went, by its class:
	//
	//   - ClassOK: it succeeded.
	//   - ClassStop: it says nothing about the server, and counts neither as a success
	//     nor as a failure: it was cancelled or panicked on its way, or would have
	//     failed anywhere. If the verdict is Skipped the try was not even begun: it was
	//     cancelled in its wait or at the gate, or the gate refused it. What was taken
	//     for it is to be given back.
	//   - ClassOverload, which a try that a deadline cut is too, and all others: it
	//     failed.
	Admit(last Verdict) (done func(Verdict), ok bool)
}

// ErrNoBudget is what a [RetryError] unwraps to if the [Budget] refused a try.
var ErrNoBudget = errors.New("not admitted by the budget")

// unlimited is the Budget of those who have none.
type unlimited struct{}

func (unlimited) Admit(Verdict) (func(Verdict), bool) { return ignore, true }

func ignore(Verdict) {}
