package backoff

import (
	"context"
	"time"
)

// Try has what a dial has to know of its supervisor. It travels in the context of the
// dial, because the supervisor and the dialer do not know each other.
type Try struct {
	N         int           // tries before this one, since the last stable session or since the start
	Connect   time.Duration // the limit on name resolution and TCP; 0: the dialer's default
	Handshake time.Duration // the limit on TLS and upgrade; 0: the dialer's default
	Refresh   bool          // the credentials of the last try were refused: make new ones

	// Connected is for the dialer to call when it is connected and the handshake
	// begins, for each connection that it makes. The context has a deadline until
	// then; afterwards the supervisor ends it when the handshake has taken too long,
	// so derive what has a limit of its own from the context after the call. Without
	// a call a handshake that is not answered is given up with the limits of the
	// try, however long the outage lasts: a large herd of such clients may keep a
	// server with a queue from coming back. Nil: nobody wants to know. It may be
	// called by any goroutine, and does not wait.
	Connected func()
}

type tryKey struct{}

// WithTry returns a context that carries t.
func WithTry(ctx context.Context, t Try) context.Context {
	return context.WithValue(ctx, tryKey{}, t)
}

// TryFrom returns the Try that ctx carries, or a zero one.
func TryFrom(ctx context.Context) Try {
	t, _ := ctx.Value(tryKey{}).(Try)
	return t
}

// ErrHung is the cause with which a supervisor ends the context of a dial whose
// handshake was not answered in time. A dialer that knows several addresses may avoid
// the one at which that happened. It is a timeout.
var ErrHung error = hung{}

type hung struct{}

func (hung) Error() string { return "the handshake was not answered in time" }

// Timeout reports true.
func (hung) Timeout() bool { return true }

// Is reports whether target is [context.DeadlineExceeded].
func (hung) Is(target error) bool { return target == context.DeadlineExceeded }
