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
