package reconnect

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Advice is what a server or an operator says about the future of a session. It comes by [Conn.Rotate],
// in the close frame that ends a session (see [ReadAdvice]), or in the error of a rejected dial or of
// OnSession, if it has a method Advice() Advice.
type Advice struct {
	// Cause is the reason, for Trace and the seam. Default: ErrRotated.
	Cause error

	// Wait is how long the next dial must wait, plus a random time from [0, Spread). Together they are
	// at most [backoff.MaxRetryAfter]: Spread is reduced first.
	Wait, Spread time.Duration

	// By is when the session will end, or zero. The next dial then begins at a random time from now
	// until By less the duration of the last opening, but within [backoff.MaxRetryAfter].
	By time.Time

	// URL is where the next dial, and only that one, is to go. A response from URL does not affect later
	// dials, except that its Retry-After is honored.
	//
	// The dialer decides whether to follow: see dialer.WebSocket.FollowHint. A dialer.Framed never follows.
	// If the URL is not followed, [Trace].AddressIgnored is called.
	URL string

	// Hint is for your own code that dials next, such as a token by which the server resumes the
	// session: see [HintFrom].
	Hint any
}

// drawn returns how long to wait before the next dial. opening is how long the last one took.
func (a Advice) drawn(r *rand.Rand, now time.Time, opening time.Duration) time.Duration {
	wait := min(max(a.Wait, 0), backoff.MaxRetryAfter)
	wait += backoff.Uniform(r, 0, min(a.Spread, backoff.MaxRetryAfter-wait))
	if !a.By.IsZero() {
		left := min(max(a.By.Sub(now), 0), backoff.MaxRetryAfter)
		wait = max(wait, backoff.Uniform(r, 0, left-opening))
	}
	return wait
}

// hints is the hint for the next dial, nil if there is none.
type hints struct{ newest atomic.Pointer[hint] }

// hint is what one advice has brought.
type hint struct {
	value any
	url   string
	tried atomic.Bool // a dial has had the url
}

// set keeps what a has for the next dial, if there is something.
func (h *hints) set(a Advice) {
	if a.Hint != nil || a.URL != "" {
		h.newest.Store(&hint{value: a.Hint, url: a.URL})
	}
}

// drop forgets old, unless there is a newer one.
func (h *hints) drop(old *hint) { h.newest.CompareAndSwap(old, nil) }

// in returns ctx with the hint, if there is one.
func (h *hint) in(ctx context.Context) context.Context {
	if h == nil {
		return ctx
	}
	return context.WithValue(ctx, hintKey{}, h.value)
}

// address returns the address for a dial, or "". Only the first dial gets it.
func (h *hint) address() string {
	if h.url == "" || h.tried.Swap(true) {
		return ""
	}
	return h.url
}

// again gives address to the next dial too, because the last one only found out that it has to wait
// at the gate for another host. It does nothing if address is empty.
func (h *hint) again(m *movedError, address string) {
	if address != "" {
		m.advised = true
		h.tried.Store(false)
	}
}

// advisedError is the failure of a dial at an advised address, and says nothing about the usual one.
type advisedError struct{ error }

// Unwrap returns the error of the dial.
func (e *advisedError) Unwrap() error { return e.error }

// hintKey is the key of the hint in a context.
type hintKey struct{}

// HintFrom returns the newest [Advice].Hint, or nil. ctx is the context of a dial (and so of
// dialer.WebSocket.Prepare) or of OnSession. A hint is available until a session is ready, or until the
// server has rejected it, by answering a dial without a connection or by failing OnSession on a sound
// connection. The hint of an Advice with a URL is available only for the dial at that URL; it is gone if
// that dial fails, or if another is answered first.
func HintFrom(ctx context.Context) any { return ctx.Value(hintKey{}) }

// ReadAdvice parses the advice in the reason of a close frame, such as "redial/1 wait=12s spread=30s
// url=wss://b.example/ws hint=...": redial/1, and then any of these fields. Durations are as in
// [time.ParseDuration]. Other and invalid fields are ignored. Package reconnect/drain writes such
// reasons.
func ReadAdvice(reason string) (a Advice, ok bool) {
	fields := strings.Fields(reason)
	if len(fields) == 0 || fields[0] != "redial/1" {
		return Advice{}, false
	}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "wait":
			a.Wait, _ = time.ParseDuration(value) // 0 after an error
			a.Wait = max(a.Wait, 0)
		case "spread":
			a.Spread, _ = time.ParseDuration(value)
			a.Spread = max(a.Spread, 0)
		case "url":
			a.URL = value
		case "hint":
			a.Hint = value
		}
	}
	return a, true
}

// adviceIn returns the advice in err, which is a close frame or has a method Advice.
func adviceIn(err error) (Advice, bool) {
	if own, ok := errors.AsType[interface {
		error
		Advice() Advice
	}](err); ok {
		return own.Advice(), true
	}
	if closed, ok := errors.AsType[*conn.CloseError](err); ok {
		return ReadAdvice(closed.Reason)
	}
	return Advice{}, false
}
