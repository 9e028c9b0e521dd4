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
	ClassRetry                 // cheap and transient: retry by the policy
	ClassOverload              // the server is overloaded (timeout, 429, 503, close 1013): waits and limits grow
	ClassRefresh               // stale credentials: retry immediately with new ones; twice in a row: ClassSlow
	ClassSlow                  // a person has to fix it (401, 404, certificate): retry slowly, see [SlowWait]
	ClassStop                  // no further attempt can help
)

var classes = [...]string{"ok", "retry", "overload", "refresh", "slow", "stop"}

// String returns the class in lower case, such as "overload".
func (c Class) String() string {
	if int(c) < len(classes) {
		return classes[c]
	}
	return fmt.Sprintf("class %d", c)
}

// Verdict is the judgment on how an attempt or a session ended.
type Verdict struct {
	Class      Class         // kind of failure
	Lenient    bool          // with ClassSlow: the first in a row counts as ClassRetry, as after a deploy
	Local      bool          // the local machine failed, or knows no such name: see [Verdict.OfServer]
	Refused    bool          // the connection was refused or reset, and is in no queue of a server
	NoCredit   bool          // ended because of what the peer sent; earns nothing unless ready for an hour
	Caller     bool          // the server refused this caller, such as its account: a [Gate] holds no other
	Skipped    bool          // the attempt was admitted but never begun; only with ClassStop, for a retry.Budget
	RetryAfter time.Duration // minimum wait that the server asked for, at most [MaxRetryAfter], or 0
}

// OfServer returns the verdict for a [Gate] or a retry.Budget, which judges the server: ClassStop if v is
// Local, otherwise v.
func (v Verdict) OfServer() Verdict {
	if v.Local {
		return Verdict{Class: ClassStop, Skipped: v.Skipped}
	}
	return v
}

// Bounded returns v, the verdict on an attempt that was begun, with a RetryAfter within [0,
// [MaxRetryAfter]], and with neither it nor Caller after ClassStop. Call it on the verdict of any function but
// [Classify].
func (v Verdict) Bounded() Verdict {
	if v.Class == ClassStop {
		v.RetryAfter, v.Caller = 0, false
	}
	v.Skipped = false
	v.RetryAfter = min(max(v.RetryAfter, 0), MaxRetryAfter)
	return v
}

// Permanent marks err as one that no further attempt can fix: [Classify] returns [ClassStop] for it.
//
// [Classify] finds a mark, including those of [Slow] and [Refresh], at any depth of an error, and it decides
// before anything else there. Of several marks the outermost counts; in an [errors.Join], the first. A marked
// error prints as err does and unwraps to it. The result is nil if err is nil.
func Permanent(err error) error { return marked(err, ClassStop) }

// Slow marks err as one that a person has to fix, such as an unpaid account: [Classify] returns [ClassSlow]
// for it.
func Slow(err error) error { return marked(err, ClassSlow) }

// Refresh marks err as a refusal of stale credentials, such as an expired token: [Classify] returns [ClassRefresh]
// for it, so that the next attempt uses new ones.
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
