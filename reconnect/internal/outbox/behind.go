package outbox

import (
	"context"
	"errors"
	"net"
	"os"
)

// AsLoss returns the cause of a session's end as the error of a message. It hides a context
// that has ended, because that was not the message's.
func AsLoss(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		return Because(ErrSessionLost, cause)
	}
	return cause
}

// Because returns err with cause behind it.
func Because(err, cause error) error {
	return &behind{error: err, text: err.Error() + ": " + cause.Error(), cause: cause}
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
