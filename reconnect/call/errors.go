package call

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/redial-go/redial/reconnect"
)

// These errors are the Err of an [Error], for a request that was not sent.
var (
	// ErrTooMany means that Options.InFlight requests are in flight. Retry later, send fewer at a time, or
	// raise InFlight.
	ErrTooMany = errors.New("too many requests in flight: Options.InFlight is the limit")

	// ErrIDInUse means that another request has the same ID: one in flight, or one that was given up and that
	// its session may still respond to.
	ErrIDInUse = errors.New("another request has the same ID, or had it and may still get its response: " +
		"use IDs that never repeat, such as the numbers of Client.Next")

	// ErrInCallback means that Do was called with the context of OnSession, Layer.Open, OnMessage or OnSeam, or
	// one derived from it.
	ErrInCallback = errors.New("Do was called with the context of a callback, " +
		"during which the Conn receives no response: " +
		"call Do in another goroutine with another context; in OnSession use Client.Ask")
)

var (
	errNoConn = errors.New("the Client has no Conn: put Client.Layer into reconnect.Options.Layers")
	errPinned = errors.New("Request.Session with Repeatable: a request for one session is not repeated in another")
	errBadID  = errors.New("Request.ID does not equal itself, such as a NaN: no response could be matched")
)

// Error reports a request that ended without a response. A request without a session ends with a [LostError]
// instead.
type Error struct {
	// Fate is [reconnect.FateDropped] or [reconnect.FateUnknown]: see [LostError].
	Fate reconnect.Fate

	Session uint64 // last session in which the request was sent or attempted, or 0
	Err     error  // reason, such as the cause of a context
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", outcome(e.Fate), e.Err) }

func outcome(f reconnect.Fate) string {
	if f == reconnect.FateDropped {
		return "request not sent"
	}
	return "request perhaps sent, no response"
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) unsent() bool { return e.Fate == reconnect.FateDropped }

// LostError reports a request that has no session to respond to it. [errors.Is] finds the reason:
//
//   - [reconnect.ErrSessionLost]: the session has ended.
//   - [reconnect.ErrNotReady]: no session is ready. If the session ended before the request was written, and no
//     other session was ready, the error is both.
//   - [net.ErrClosed]: the Conn is closed or closing.
//
// [errors.Is] and [errors.As] find the errors that Err wraps, but errors.Is never finds
// [context.DeadlineExceeded] and [context.Canceled], and finds [net.ErrClosed] only if the Conn is closed.
type LostError struct {
	// Fate is [reconnect.FateDropped] if nothing of the request was sent, so that repeating it is harmless. It
	// is [reconnect.FateUnknown] if the peer may have acted on the request: ask the peer.
	Fate reconnect.Fate

	Session uint64 // session of the request, or 0 if none was ready
	Err     error  // why the session has ended, or why none was ready

	closed bool // the Conn is closed, or Shutdown was called
}

func (e *LostError) Error() string {
	if e.Session == 0 {
		return fmt.Sprintf("%s: %v", outcome(e.Fate), e.Err)
	}
	return fmt.Sprintf("%s: session %d ended: %v", outcome(e.Fate), e.Session, e.Err)
}

// Is reports whether e is target, as described at [LostError].
func (e *LostError) Is(target error) bool {
	switch target {
	case reconnect.ErrSessionLost:
		return e.Session != 0
	case net.ErrClosed:
		return e.closed
	case context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded:
		return false
	}
	return errors.Is(e.Err, target)
}

// As finds the errors that Err wraps.
func (e *LostError) As(target any) bool { return errors.As(e.Err, target) }

func (e *LostError) unsent() bool { return e.Fate == reconnect.FateDropped }

// Unsent reports whether an error of [Client.Do] means that nothing of the request was sent, so that repeating
// it is harmless. If false, the peer may have the request. Do not use the type of the error for this: a request
// whose context is done ends with an [Error], but may have been sent.
func Unsent(err error) bool {
	e, ok := errors.AsType[interface {
		error
		unsent() bool
	}](err)
	return ok && e.unsent()
}
