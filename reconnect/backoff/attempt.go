package backoff

import (
	"context"
	"time"
)

// Attempt describes a dial. A supervisor passes it in the context of the dial.
type Attempt struct {
	Number    int           // 1 for the first since the last stable session or the start; 0 if unknown
	Connect   time.Duration // limit on name resolution and TCP, or 0 for the dialer's default
	Handshake time.Duration // limit on TLS and upgrade, or 0 for the dialer's default
	Refresh   bool          // the last credentials were rejected: make new ones
	Err       error         // why the last dial failed or the last session ended; nil for the first dial

	// URL was advised by the server of the last session, or is empty. The dialer decides whether to trust it.
	URL string

	// A dialer that knows URL should call Followed, if non-nil, before it returns: with nil if it dials URL,
	// otherwise with the reason why not.
	Followed func(err error)

	// A dialer with a handshake should call Accepted, if non-nil, before it returns a connection, with the
	// header of the server's response, such as an http.Header. Accepted does not block.
	Accepted func(header map[string][]string)

	// Host, if non-nil, should be called before connecting to each host, with the host and port, or with "" for
	// the result of the dialer's method Host. The dialer must return an error from Host: the supervisor has
	// waited at a gate for another host, and dials again after waiting for this one. Host does not block.
	Host func(host string) error

	// Connected, if non-nil, should be called for each connection when its handshake begins. The context has a
	// deadline until then; afterwards the supervisor limits the handshake, so derive a context with a shorter
	// limit only after the call. Without the call an unanswered handshake is given up at the limits of the
	// attempt. Connected does not block, and is safe for concurrent use.
	Connected func()
}

type attemptKey struct{}

// WithAttempt returns a context that carries t.
func WithAttempt(ctx context.Context, t Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, t)
}

// AttemptFrom returns the Attempt in ctx, or a zero Attempt.
func AttemptFrom(ctx context.Context) Attempt {
	t, _ := ctx.Value(attemptKey{}).(Attempt)
	return t
}

// ErrHung is the cause with which a supervisor cancels a dial whose handshake hangs. It is a timeout.
var ErrHung error = hung{}

type hung struct{}

func (hung) Error() string { return "the handshake was not answered in time" }

// Timeout reports true.
func (hung) Timeout() bool { return true }

// Is reports whether target is [context.DeadlineExceeded].
func (hung) Is(target error) bool { return target == context.DeadlineExceeded }
