package call

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/redial-go/redial/reconnect"
)

// These are behind the [Error] of a question that was not sent.
var (
	// ErrTooMany says that as many questions are without an answer as Options.InFlight
	// allows. Ask again later, or ask less at a time.
	ErrTooMany = errors.New("too many questions are in flight")

	// ErrIDInUse says that another question has the same id. It has no answer yet, or it was
	// given up and its session may still answer it.
	ErrIDInUse = errors.New("the id is in use")

	// ErrInCallback says that Do was called with the context of OnSession, Layer.Open,
	// OnMessage or OnSeam, or one that comes from it. While one of these runs no answer can
	// be received.
	ErrInCallback = errors.New("the context is that of a callback of the Conn, which receives no answer while that runs: " +
		"call Do in a goroutine, with a context of your own; in OnSession use Opening.Write and Read")
)

var (
	errNoConn = errors.New("the Layer of the Client is in the Options.Layers of no Conn")
	errPinned = errors.New("Request.Session with Repeatable: a question for one session cannot go again by another")
	errBadID  = errors.New("Request.ID is not equal to itself, as a NaN")
)

// Error reports a question that has ended without an answer, for another reason than that there is
// no session for it: see [LostError].
type Error struct {
	// Fate is [reconnect.FateDropped] if not a byte of the question was sent, and
	// [reconnect.FateUnknown] if the peer may have it: see LostError.
	Fate reconnect.Fate

	Session uint64 // by which it went last, or tried to; 0: none
	Err     error  // such as the cause of a context
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

// LostError reports a question for whose answer there is no session: it has ended, or none is ready.
// Use errors.Is with [reconnect.ErrSessionLost] and [reconnect.ErrNotReady] to tell the two
// apart, and with [net.ErrClosed] to learn that the Conn was closed, or is about to be. An error is
// both of the first two if the session ended before the question was written, and no other was
// ready.
//
// errors.Is and errors.As find what is behind Err. But errors.Is does not find
// [context.DeadlineExceeded] and [context.Canceled] there, nor net.ErrClosed unless
// the Conn is closed, so that nobody takes a dial that timed out for the end of the
// question's context, or the end of a connection for that of the Conn.
type LostError struct {
	// Fate is [reconnect.FateDropped] if not a byte of the question was sent, so that it
	// does no harm to ask again. It is [reconnect.FateUnknown] if the peer may have the
	// question, and may have done what it asks for: ask the peer.
	Fate reconnect.Fate

	Session uint64 // by which it was asked; 0: none was ready
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

// Is reports whether target is [reconnect.ErrSessionLost] and there was a session, whether it is
// [net.ErrClosed] and the Conn is closed, or whether it is behind Err and not the end of
// something else.
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

// As looks into Err.
func (e *LostError) As(target any) bool { return errors.As(e.Err, target) }

func (e *LostError) unsent() bool { return e.Fate == reconnect.FateDropped }

// Unsent reports whether an error of [Client.Do] says that not a byte of the question was sent, so
// that it does no harm to ask again. False means that the peer may have the question. Ask Unsent
// rather than look for a [LostError], because a question whose time is over ends with an [Error],
// and may have been sent as well.
func Unsent(err error) bool {
	e, ok := errors.AsType[interface {
		error
		unsent() bool
	}](err)
	return ok && e.unsent()
}
