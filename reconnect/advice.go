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

// Advice is what a server or an operator says about the future of a session. It comes by
// [Conn.Rotate], with the close frame that ends a session (see Options.ReadAdvice), or in the
// error of a refused dial or of OnSession, if that error has a method Advice() Advice.
type Advice struct {
	// Cause says why, for Trace and the seam. Default: ErrRotated.
	Cause error

	// Wait is how long the next dial must wait. A random time from [0, Spread) is added to it,
	// so that the clients of one server do not come back at one moment. Both together count
	// as [backoff.MaxRetryAfter] at most: what is more is taken off the Spread first.
	Wait, Spread time.Duration

	// By is when the session will end, if that is known. The next dial is then begun at a
	// time drawn from now until By, less what the last opening took; but within
	// [backoff.MaxRetryAfter], even if By is later. Default: not known.
	By time.Time

	// URL is where the next dial is to go: one dial only, because the address may be wrong. The
	// dials after that go where they always do. An answer from URL, such as 403 or 410, does
	// not affect them, except that its Retry-After is honored.
	//
	// The dialer decides whether it follows: a dialer.WebSocket does so to the same scheme,
	// host and port, and elsewhere if its FollowHint says so; a dialer.Framed never does.
	// [Trace].AddressIgnored reports that it was not followed. Default: the usual address.
	URL string

	// Hint is what the next dial needs to know besides, such as a token by which the server
	// resumes the session: see [HintFrom]. Only your own code looks at it. Default: nothing.
	Hint any
}

// drawn returns how long to wait before the next dial. opening is how long the last one
// took.
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
func (h *hints) drop(old *hint) {
	if old != nil {
		h.newest.CompareAndSwap(old, nil)
	}
}

// in returns ctx with the hint, if there is one.
func (h *hint) in(ctx context.Context) context.Context {
	if h == nil {
		return ctx
	}
	return context.WithValue(ctx, hintKey{}, h.value)
}

// address returns the address for a dial, or "". Only the first dial gets it.
func (h *hint) address() string {
	if h == nil || h.url == "" || h.tried.Swap(true) {
		return ""
	}
	return h.url
}

// advisedError is the failure of a dial at an address that was advised. What has to be mended
// there says nothing about the usual one.
type advisedError struct{ error }

// Unwrap returns the error of the dial.
func (e *advisedError) Unwrap() error { return e.error }

// hintKey is the key of the hint in a context.
type hintKey struct{}

// HintFrom returns the newest [Advice].Hint, nil if there is none. ctx is the context of a
// dial, and so of dialer.WebSocket.Prepare, or that of OnSession. A hint serves until a
// session is ready, or until an attempt that had it was refused: a dial that was answered,
// though not with a connection, or an OnSession that has failed while the connection was
// sound. After that it is dropped, so that a token which the server has forgotten is tried
// once.
func HintFrom(ctx context.Context) any { return ctx.Value(hintKey{}) }

// ReadAdvice is the default of Options.ReadAdvice. It reads a reason such as
// "redial/1 wait=12s spread=30s url=wss://b.example/ws hint=...": the word redial/1, and then
// any of these fields, between spaces. The durations are those of [time.ParseDuration], the URL
// and the hint are strings. Package reconnect/drain writes such reasons. Fields that it does not
// know, or cannot read, are ignored.
func ReadAdvice(code int, reason string) (a Advice, ok bool) {
	fields := strings.Fields(reason)
	if len(fields) == 0 || fields[0] != "redial/1" {
		return Advice{}, false
	}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "wait":
			a.Wait = readDuration(value)
		case "spread":
			a.Spread = readDuration(value)
		case "url":
			a.URL = value
		case "hint":
			a.Hint = value
		}
	}
	return a, true
}

// readDuration returns the duration that text says, 0 if it says none, and none below 0.
func readDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// adviceIn returns the advice in err: that of a close frame, or of an error with a method
// Advice.
func adviceIn(err error, read func(code int, reason string) (Advice, bool)) (Advice, bool) {
	if own, ok := errors.AsType[interface {
		error
		Advice() Advice
	}](err); ok {
		return own.Advice(), true
	}
	if closed, ok := errors.AsType[*conn.CloseError](err); ok {
		return read(closed.Code, closed.Reason)
	}
	return Advice{}, false
}
