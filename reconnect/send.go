package reconnect

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
)

// Out is a message to be sent, and on which terms.
type Out struct {
	// Message is what is sent. Its data belongs to the Conn until Outbox.Done has
	// been told of it.
	conn.Message

	// Deadline is when it is of no use any more: it is never sent later.
	// Default: none but Outbox.Age.
	Deadline time.Time

	// Key names what the message is about: see [ReplaceKey]. Default: nothing.
	Key string

	// Session is the only session by which it may be sent, such as that of the
	// message which it answers, or the one by which its other parts went.
	// Default: any.
	Session uint64

	// Repeatable says that it does no harm if the message arrives twice: where
	// its fate would be Unknown it is sent again by the next session, if messages
	// are kept ([KeepSends]), as often as it takes until its Deadline or the
	// Outbox's Age. Default: it is never sent again.
	Repeatable bool

	// Tag is the caller's own, such as an order's number. Default: nil.
	Tag any
}

// Receipt says what became of an accepted message.
type Receipt struct {
	Out     Out    // the message, back in the caller's hands
	Fate    Fate   // the one it has
	Session uint64 // by which it was written, or last tried; 0: none
	Tries   int    // how many sessions it was given to; more than 1 only if it is Repeatable
	Err     error  // why it was not written; nil if it was
}

// Send queues a message and returns without waiting for the network. Nil means
// that it was accepted: its fate reaches Outbox.Done, which must be set, exactly
// once. An error, a *[WriteError], means that it was not and that Done will not
// hear of it.
//
// Messages are written one after the other in the order in which they were
// accepted, those of [Conn.Write] among them. While no session is ready Send
// refuses them with [ErrNotReady], or keeps them, as Options.Down says; what is
// kept is sent when OnSession of the next session has returned.
func (c *Conn) Send(o Out) error {
	if c.outbox == nil || c.o.Outbox.Done == nil {
		return errNobodyToTell
	}
	err := c.outbox.accept(o)
	if err != nil {
		c.counts.dropped.Add(1)
		return &WriteError{Fate: Dropped, Err: err}
	}
	return nil
}

var errNobodyToTell = errors.New("reconnect: Send needs Options.Outbox.Done, or what became of a message would be lost")

// The reasons why a message was dropped, beside [ErrNotReady], [net.ErrClosed]
// and the error of the connection.
var (
	ErrOutboxFull  = errors.New("outbox is full")
	ErrReplaced    = errors.New("replaced by a newer message with the same key")
	ErrExpired     = errors.New("too late to be sent") // Out.Deadline or Outbox.Age has passed
	ErrSessionLost = errors.New("its session was lost")
)

// UnsentError is the error of [Conn.Shutdown] if messages were left that could not
// be sent. Outbox.Done has been told of each of them too.
type UnsentError struct {
	Unsent []Receipt // in order
	Err    error     // why Shutdown waited no longer; nil: it was not for that
}

func (e *UnsentError) Error() string {
	text := fmt.Sprintf("reconnect: shutdown: %d messages were not sent", len(e.Unsent))
	if len(e.Unsent) == 1 {
		text = "reconnect: shutdown: 1 message was not sent"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *UnsentError) Unwrap() error { return e.Err }

// refusal says why nothing can be sent in status, if so.
func (c *Conn) refusal() error {
	status := c.Status()
	switch {
	case status.State == StateClosed:
		return net.ErrClosed
	case status.Err != nil:
		return fmt.Errorf("%w (%v): %w", ErrNotReady, status.State, status.Err)
	default:
		return fmt.Errorf("%w (%v)", ErrNotReady, status.State)
	}
}
