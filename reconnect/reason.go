package reconnect

import (
	"errors"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// reasonError is why we ended a session.
type reasonError struct {
	text   string
	reason backoff.Reason
}

func (e *reasonError) Error() string { return e.text }

// Reason returns the reason for [backoff.ReasonOf].
func (e *reasonError) Reason() backoff.Reason { return e.reason }

// reasonOf returns the reason why a session has ended because of err.
func reasonOf(err error) backoff.Reason {
	_, protocol := errors.AsType[*conn.ProtocolError](err)
	_, big := errors.AsType[*conn.TooBigError](err)
	_, slow := errors.AsType[*conn.SlowMessageError](err)
	switch {
	case protocol || big:
		return backoff.ReasonProtocol
	case slow:
		return backoff.ReasonTimeout
	}
	return backoff.ReasonOf(err)
}
