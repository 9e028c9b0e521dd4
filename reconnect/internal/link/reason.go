package link

import (
	"errors"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Ended is the error of a session that we have ended, and its reason.
type Ended struct {
	Text string
	Why  backoff.Reason
}

func (e *Ended) Error() string { return e.Text }

// Reason returns the reason for [backoff.ReasonOf].
func (e *Ended) Reason() backoff.Reason { return e.Why }

// ReasonOf returns the reason why a session has ended because of err.
func ReasonOf(err error) backoff.Reason {
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
