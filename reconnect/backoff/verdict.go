package backoff

import "time"

// Class is what kind of failure it was, and so what to do about it.
type Class uint8

// The classes, mildest first.
const (
	ClassOK       Class = iota // no failure
	ClassRetry                 // cheap and passing: try again by the policy
	ClassOverload              // the server has too much to do (timeout, 429, 503, close 1013): waits and patience go on growing
	ClassRefresh               // the credentials are stale: try again with new ones; a second time in a row it counts as Slow
	ClassSlow                  // somebody has to mend something (401, 404, certificate): try again minutes apart
	ClassStop                  // never again
)

// Verdict is the judgement on why an attempt or a session ended.
type Verdict struct {
	Class      Class
	RetryAfter time.Duration // what the server told us to wait at least; 0: nothing told; at most [MaxRetryAfter]
}

// MaxRetryAfter is the longest wait that a server can ask for.
const MaxRetryAfter = time.Hour
