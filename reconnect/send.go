package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
)

// Out is a message to be sent, and on which terms.
type Out struct {
	// Message is what is sent. Its data belongs to the Conn until Outbox.OnReceipt has
	// been called with it.
	conn.Message

	// Deadline is when it is of no use any more: no write of it begins later. A
	// write that has begun is not cut for it: [Receipt.Began] says when that was.
	// Default: none but Outbox.Age.
	Deadline time.Time

	// Key names what the message is about: see [OverflowReplaceKey]. Default: nothing.
	Key string

	// Session is the only session by which it may be sent, such as that of the
	// message which it answers, or the one by which its other parts went.
	// Default: any.
	Session uint64

	// Repeatable says that it does no harm if the message arrives twice: where
	// its fate would be FateUnknown it is sent again by the next session, if messages
	// are kept ([WhenDownKeep]), as often as it takes until its Deadline or the
	// Outbox's Age. Default: it is never sent again.
	Repeatable bool

	// Tag is the caller's own, such as an order's number. Default: nil.
	Tag any
}

// Receipt says what became of an accepted message.
type Receipt struct {
	Out     Out       // the message, back in the caller's hands
	Fate    Fate      // the one it has
	Session uint64    // by which it was written, or last tried; 0: none
	Tries   int       // how many sessions it was given to; more than 1 only if it is Repeatable
	Began   time.Time // when the last write of it began; zero: none did
	Ended   time.Time // when that write ended
	Err     error     // why it was not written; nil if it was
}

// Send queues a message and returns without waiting for the network. Nil means
// that it was accepted: its fate reaches Outbox.OnReceipt, which must be set, exactly
// once. An error, a *[WriteError], means that it was not and that OnReceipt is not
// called with it.
//
// Messages are written one after the other in the order in which they were
// accepted, those of [Conn.Write] among them. While no session is ready Send
// refuses them with [ErrNotReady], or keeps them, as Options.WhenDown says; what is
// kept is sent when OnSession of the next session has returned. Messages that wait at the
// same time are handed to the kernel together, up to 64 of them or 32 KiB, if the
// connection is a [conn.BatchWriter]; none is held back for that.
func (c *Conn) Send(o Out) error { return c.sender.send(o) }

// SendWait is Send, but where that would fail for want of room ([ErrOutboxFull]) it
// waits until there is some, or until ctx ends.
func (c *Conn) SendWait(ctx context.Context, o Out) error { return c.sender.sendWait(ctx, o) }

var errNoOnReceipt = errors.New("reconnect: Send needs Options.Outbox.OnReceipt, because nobody else could learn what became of a message")

// The reasons why a message was dropped, beside [ErrNotReady], [net.ErrClosed]
// and the error of the connection.
var (
	ErrOutboxFull  = errors.New("outbox is full")
	ErrReplaced    = errors.New("replaced by a newer message with the same key")
	ErrExpired     = errors.New("too late to be sent") // Out.Deadline or Outbox.Age has passed
	ErrSessionLost = errors.New("its session was lost")
)

// WriteError reports a message that was not written, and its fate. Use errors.Is
// to learn why: [ErrNotReady], [ErrSessionLost], [net.ErrClosed], or the cause of
// the context that was given with the message. What is behind ErrNotReady and
// ErrSessionLost, such as the error of the last dial, is found by errors.Is and
// errors.As too; but errors.Is does not find [context.DeadlineExceeded],
// [context.Canceled] and net.ErrClosed there, so that a dial which timed out is not
// taken for the end of one's own context, nor the end of a connection for that of
// the Conn.
type WriteError struct {
	Fate    Fate
	Session uint64 // by which it was tried; 0: none
	Err     error
}

func (e *WriteError) Error() string { return fmt.Sprintf("message %v: %v", e.Fate, e.Err) }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// Fate is what became of a message. Each has exactly one.
type Fate uint8

// The fates.
const (
	FateWritten Fate = iota // whole, handed to the kernel
	FateDropped             // not a byte of it was sent; it may be sent again
	FateUnknown             // its connection died while it was being written
)

func (f Fate) String() string {
	switch f {
	case FateWritten:
		return "written"
	case FateDropped:
		return "dropped"
	default:
		return "unknown"
	}
}

// ErrNotReady is why a message was dropped while no session was ready.
var ErrNotReady = errors.New("no session is ready")

// behind is an error with what is behind it, in which errors.Is does not find the
// end of a context or of a connection.
type behind struct {
	error // found by everything
	text  string
	cause error
}

func (b *behind) Error() string { return b.text }

// Unwrap returns the error.
func (b *behind) Unwrap() error { return b.error }

// As finds what is behind the error.
func (b *behind) As(target any) bool { return errors.As(b.cause, target) }

// Is finds what is behind the error, but for ends.
func (b *behind) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded, net.ErrClosed:
		return false
	}
	return errors.Is(b.cause, target)
}

// UnsentError is the error of [Conn.Shutdown] if messages were left that could not
// be sent. Outbox.OnReceipt is called with each of them too.
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
