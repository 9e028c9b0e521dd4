package call

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/redial-go/redial/reconnect"
)

// These errors are the Err of an [Error], for a question that was not sent.
var (
	// ErrTooMany says that Options.InFlight questions are without an answer. Ask again later,
	// ask fewer at a time, or raise InFlight.
	ErrTooMany = errors.New("too many questions are in flight: Options.InFlight is the limit")

	// ErrIDInUse says that another question has the same id: a question without an answer, or a
	// question that was given up and that its session may still answer.
	ErrIDInUse = errors.New("another question has the same id, or had it and may still be answered: " +
		"use ids that never repeat, such as the numbers of Client.Next")

	// ErrInCallback says that Do was called with the context of OnSession, Layer.Open,
	// OnMessage or OnSeam, or with a context derived from it. The Conn receives no answer while
	// one of these callbacks runs.
	ErrInCallback = errors.New("Do was called with the context of a callback, and the Conn receives no answer while the callback runs: " +
		"call Do in another goroutine with another context; in OnSession use Client.Ask")
)

var (
	errNoConn = errors.New("the Client has no Conn: put Client.Layer into reconnect.Options.Layers")
	errPinned = errors.New("Request.Session with Repeatable: a question for one session cannot go again by another")
	errBadID  = errors.New("Request.ID does not equal itself, such as a NaN: no answer could be matched")
)

// Error reports a question that ended without an answer. Exception: a question without a session ends
// with a [LostError].
type Error struct {
	// Fate is [reconnect.FateDropped] if not a byte of the question was sent, and
	// [reconnect.FateUnknown] if the peer may have it: see LostError.
	Fate reconnect.Fate

	Session uint64 // the session by which the question went last, or tried to go; 0: none
	Err     error  // why the question ended, such as the cause of a context
}

func (e *Error) Error() string {
	if e.unsent() {
		return fmt.Sprintf("question not sent: %v", e.Err)
	}
	return fmt.Sprintf("question perhaps sent, not answered: %v", e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) unsent() bool { return e.Fate == reconnect.FateDropped }

// LostError reports a question that has no session to answer it. Use errors.Is to learn why:
//
//   - [reconnect.ErrSessionLost]: the session has ended.
//   - [reconnect.ErrNotReady]: no session is ready. If the session ended before the question was
//     written, and no other session was ready, the error is both.
//   - [net.ErrClosed]: the Conn was closed, or is about to be.
//
// errors.Is and errors.As find the errors that Err wraps, except these: errors.Is never finds
// [context.DeadlineExceeded] and [context.Canceled], and finds net.ErrClosed only if the Conn is
// closed. So a dial that timed out is not taken for the end of the question's context, and the end of
// a connection is not taken for the end of the Conn.
type LostError struct {
	// Fate is [reconnect.FateDropped] if not a byte of the question was sent, so that it
	// does no harm to ask again. Fate is [reconnect.FateUnknown] if the peer may have the
	// question and may have acted on it: ask the peer.
	Fate reconnect.Fate

	Session uint64 // the session by which the question was asked; 0: no session was ready
	Err     error  // why the session has ended, or why none was ready

	closed bool // the Conn is closed, or Shutdown was called
}

func (e *LostError) Error() string {
	switch {
	case e.Session == 0:
		return fmt.Sprintf("question not sent: %v", e.Err)
	case e.unsent():
		return fmt.Sprintf("question not sent: session %d ended: %v", e.Session, e.Err)
	}
	return fmt.Sprintf("question perhaps sent, not answered: session %d ended: %v", e.Session, e.Err)
}

// Is reports whether e is target, by the rules at [LostError].
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

// Unsent reports whether an error of [Client.Do] says that not a byte of the question was sent, so
// that it does no harm to ask again. False means that the peer may have the question. Use Unsent
// and not the type of the error: a question whose context has ended may have been sent as well, and
// ends with an [Error].
func Unsent(err error) bool {
	e, ok := errors.AsType[interface {
		error
		unsent() bool
	}](err)
	return ok && e.unsent()
}
