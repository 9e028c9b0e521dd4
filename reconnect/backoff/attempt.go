package backoff

import (
	"context"
	"time"
)

// Attempt has what a dial needs to know from its supervisor. It travels in the context of the
// dial, because the supervisor and the dialer do not know each other.
type Attempt struct {
	Number    int           // 1 for the first since the last stable session, or since the start; 0 if unknown
	Connect   time.Duration // the limit on name resolution and TCP, or 0 for the dialer's default
	Handshake time.Duration // the limit on TLS and upgrade, or 0 for the dialer's default
	Refresh   bool          // the credentials of the last try were rejected: make new ones

	// URL is where this try is to go, because the server of the last session has advised it. The
	// dialer decides whether to trust it. It is empty if the dialer goes where it always does.
	URL string

	// Followed is for the dialer to call before it returns, if it knows URL: with nil if it dials
	// URL, and else with the reason why not. It may be nil.
	Followed func(err error)

	// Host is for the dialer to call before it connects to each host, with the host and port, or
	// with "" if it goes where its method Host says. If Host returns an error, the dialer must
	// return that error: the supervisor has waited at a gate for another host. It then waits for
	// this one, and calls the dialer again. Host does not block. It may be nil.
	Host func(host string) error

	// Connected is for the dialer to call when it is connected and the handshake begins, for each
	// connection that it makes. The context has a deadline until then; afterwards the supervisor ends
	// it when the handshake has taken too long, so derive a context with a shorter limit after the
	// call. Without a call a handshake that is not answered is given up with the limits of the try: a
	// large herd of such clients may keep a server with a queue from coming back. Any goroutine may
	// call Connected, and it does not wait. It may be nil.
	Connected func()
}

type attemptKey struct{}

// WithAttempt returns a context that carries t.
func WithAttempt(ctx context.Context, t Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, t)
}

// AttemptFrom returns the Attempt that ctx carries, or a zero one.
func AttemptFrom(ctx context.Context) Attempt {
	t, _ := ctx.Value(attemptKey{}).(Attempt)
	return t
}

// ErrHung is the cause with which a supervisor ends the context of a dial whose handshake was not answered
// in time. A dialer that knows several addresses may avoid the address of that dial. ErrHung is a timeout.
var ErrHung error = hung{}

type hung struct{}

func (hung) Error() string { return "the handshake was not answered in time" }

// Timeout reports true.
func (hung) Timeout() bool { return true }

// Is reports whether target is [context.DeadlineExceeded].
func (hung) Is(target error) bool { return target == context.DeadlineExceeded }
