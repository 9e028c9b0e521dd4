package backoff

import (
	"fmt"
	"time"
)

// Class is a kind of failure, and so what to do about it.
type Class uint8

// The classes, mildest first.
const (
	ClassOK       Class = iota // no failure
	ClassRetry                 // cheap and passing: try again by the policy
	ClassOverload              // the server has too much to do (timeout, 429, 503, close 1013): waits and patience go on growing
	ClassRefresh               // the credentials are stale: try again at once with new ones; the second in a row counts as ClassSlow
	ClassSlow                  // somebody has to mend something (401, 404, certificate): try again, at first after about 10 s, later minutes apart: see [SlowWait]
	ClassStop                  // no further try can help
)

var classes = [...]string{"ok", "retry", "overload", "refresh", "slow", "stop"}

// String returns the class's name in lower case, such as "overload".
func (c Class) String() string {
	if int(c) < len(classes) {
		return classes[c]
	}
	return fmt.Sprintf("class %d", c)
}

// Verdict is the judgement on how a try or a session ended.
type Verdict struct {
	Class      Class         // what kind of failure it is
	Lenient    bool          // with ClassSlow: the first in a row counts as ClassRetry, because a deploy or a damaged packet may be the cause
	Local      bool          // our own machine failed, or knows no such name: it says nothing about the server, see [Verdict.OfServer]
	Refused    bool          // the connection was refused or reset, so that no server has the dial in a queue
	NoCredit   bool          // of a session: it was ended because of what the peer sent, and earns nothing unless it was ready for an hour
	Skipped    bool          // the try was admitted but never begun; only with ClassStop, and only a retry.Budget sees it
	RetryAfter time.Duration // how long the server told us to wait at least; 0: it did not; at most [MaxRetryAfter]
}

// OfServer returns the verdict that a [Gate] or a retry.Budget should get, which judges the
// server: ClassStop, which says nothing about it, if v is Local.
func (v Verdict) OfServer() Verdict {
	if v.Local {
		return Verdict{Class: ClassStop, Skipped: v.Skipped}
	}
	return v
}

// Bounded returns v, the verdict on a try that was begun, with a RetryAfter within [0, [MaxRetryAfter]],
// and with 0 after ClassStop. Call it on the verdict of a Classify that is not [Classify].
func (v Verdict) Bounded() Verdict {
	if v.Class == ClassStop {
		v.RetryAfter = 0
	}
	v.Skipped = false
	v.RetryAfter = min(max(v.RetryAfter, 0), MaxRetryAfter)
	return v
}

// Permanent marks err as one that no further try can mend: [Classify] returns [ClassStop] for it.
//
// These rules hold for Permanent, [Slow] and [Refresh] alike. Classify finds the mark however deep in an
// error it is, and the mark decides before anything else in the error. Of several marks the outermost
// counts; in an [errors.Join], the first. A marked error prints as err does and unwraps to it. The result
// is nil if err is nil.
func Permanent(err error) error { return marked(err, ClassStop) }

// Slow marks err as one that a person has to mend, such as an account that is not yet paid for: [Classify]
// returns [ClassSlow] for it, so that the tries are soon minutes apart (see [SlowWait]).
func Slow(err error) error { return marked(err, ClassSlow) }

// Refresh marks err as a refusal of stale credentials, such as a token that has expired: [Classify] returns
// [ClassRefresh] for it, so that the next try is made with new ones (see [Attempt].Refresh). A
// second refusal in a row counts as [ClassSlow].
func Refresh(err error) error { return marked(err, ClassRefresh) }

func marked(err error, c Class) error {
	if err == nil {
		return nil
	}
	return &judged{mark{err}, c}
}

// mark is an error with something added to it.
type mark struct{ err error }

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// Unmark returns the error without the mark, for package retry.
func (m *mark) Unmark() error { return m.err }

type judged struct {
	mark
	class Class
}

func (j *judged) Verdict() Verdict { return Verdict{Class: j.class} }
