package outbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// Outgoing has the fields of reconnect.Outgoing.
type Outgoing struct {
	conn.Message
	Deadline   time.Time
	Key        string
	Session    uint64
	Repeatable bool
	Tag        any
}

// Receipt has the fields of reconnect.Receipt.
type Receipt struct {
	Out     Outgoing
	Fate    Fate
	Session uint64
	Tries   int
	Began   time.Time
	Ended   time.Time
	Err     error
}

// Fate is what became of a message. Its values are those of reconnect.Fate.
type Fate uint8

// The fates.
const (
	FateWritten Fate = iota
	FateDropped
	FateUnknown
)

// Count counts a message with that fate, which is not FateWritten.
func (f Fate) Count(n *link.Counts) {
	switch f {
	case FateDropped:
		n.Dropped.Add(1)
	case FateUnknown:
		n.Unknown.Add(1)
	}
}

// These are the reasons why a message was dropped.
var (
	ErrFull        = errors.New("outbox is full")
	ErrReplaced    = errors.New("replaced by a newer message with the same key")
	ErrExpired     = errors.New("too late to be sent")
	ErrSessionLost = errors.New("its session was lost")
)

// SessionLost returns the error of a message for a session that has ended, or that has never
// been.
func SessionLost(session uint64) error {
	return fmt.Errorf("session %d: %w", session, ErrSessionLost)
}

// Waiting is a message of Write that is queued.
type Waiting struct{ e *entry }

// Done returns a channel that is closed when the message has its fate.
func (w Waiting) Done() <-chan struct{} { return w.e.Value.done }

// FailFast reports whether the message does not wait for another session.
func (w Waiting) FailFast() bool { return w.e.Value.failFast }

// Session returns the only session by which the message may go; 0: any.
func (w Waiting) Session() uint64 { return w.e.Value.Out.Session }

// Outcome returns the fate of the message, the session that tried to write it, 0 if none did, and why
// it was not written. Call it after Done, or after Withdraw.
func (w Waiting) Outcome() (f Fate, session uint64, err error) {
	return w.e.Value.Fate, w.e.Value.Session, w.e.Value.Err
}

// AsLoss returns the cause of a session's end as the error of a message, which is ErrSessionLost if the
// message was for that session only: session is not 0 then. It hides a context that has ended, because
// that was not the message's.
func AsLoss(session uint64, cause error) error {
	if session != 0 || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return Because(ErrSessionLost, cause)
	}
	return cause
}

// Because returns err with cause behind it.
func Because(err, cause error) error {
	return &behind{error: err, text: err.Error() + ": " + cause.Error(), cause: cause}
}

// Ended returns net.ErrClosed, with the text of cause, which is why the Conn has ended, and cause behind it.
func Ended(cause error) error {
	return &behind{error: net.ErrClosed, text: cause.Error(), cause: cause}
}

// behind is an error with a cause behind it. In the cause errors.Is does not find the end of
// a context or of a connection.
type behind struct {
	error // which errors.Is and errors.As find
	text  string
	cause error
}

func (b *behind) Error() string { return b.text }

// Unwrap returns the error.
func (b *behind) Unwrap() error { return b.error }

// As looks into the cause.
func (b *behind) As(target any) bool { return errors.As(b.cause, target) }

// Is looks into the cause, except for ends.
func (b *behind) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded, net.ErrClosed:
		return false
	}
	return errors.Is(b.cause, target)
}
