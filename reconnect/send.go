package reconnect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/outbox"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Outgoing is a message for [Conn.Send], and the terms on which it is sent.
type Outgoing struct {
	// Message is sent. If Send accepts it, its data belongs to the Conn until Outbox.OnReceipt is
	// called with it. Without OnReceipt the caller must not change it again.
	conn.Message

	// Deadline is when the message is of no use any more: no write of it begins later. (If the connection
	// writes a batch one message after the other, as a [conn.WebSocket] in a browser does, the write of the
	// batch begins no later.) A write that has begun goes on; [Receipt.Began] says when it began. The zero
	// time means no deadline but Outbox.Age.
	Deadline time.Time

	// Key names what the message is about: see [OutboxReplaceKey]. Default: nothing.
	Key string

	// Session is the only session by which the message may be sent, such as the session of the
	// message that it answers. When that session is lost the message is dropped, with ErrSessionLost.
	// Default: any.
	Session uint64

	// Repeatable says that it does no harm if the message arrives twice. With [WhenDownKeep], if its
	// fate would be FateUnknown, it is then sent again by the next session, as often as it takes until
	// its Deadline or Outbox.Age has passed. Default: no message is sent again.
	Repeatable bool

	// Tag is the caller's own, such as the number of an order. Default: nil.
	Tag any
}

// Receipt has the fate of a message that Send accepted.
type Receipt struct {
	Outgoing Outgoing  // the message; its data belongs to the caller again
	Fate     Fate      // of the message
	Session  uint64    // the session by which it was written, or tried last; 0: none
	Tries    int       // the number of sessions that tried it; above 1 only if it is Repeatable
	Began    time.Time // when the last write of it began; zero: none did
	Ended    time.Time // when that write ended; zero: none began
	Err      error     // why it was not written; nil if it was
}

// Send queues a message and returns without waiting for the network. Nil means that the message was
// accepted: Outbox.OnReceipt is called with its fate exactly once. Without OnReceipt the fate is only
// counted, in [Stats]. An error means that the message was not accepted, and that OnReceipt is not called
// with it. The error is a *[WriteError].
//
// Messages are written one after the other in the order in which they were accepted, also those of
// [Conn.Write]. While no session is ready Send refuses a message, with [ErrNotReady], or keeps it
// until OnSession of the next session has returned: see Options.WhenDown. Messages that wait at the
// same time are handed to the kernel together, up to 64 of them or 32 KiB, if the connection is a
// [conn.Transport]. None is held back for that.
func (c *Conn) Send(o Outgoing) error {
	if err := c.sender.queue().Accept((*outbox.Outgoing)(&o)); err != nil {
		return c.sender.unwritten(FateDropped, 0, err)
	}
	return nil
}

// SendWait is Send, but waits while there is no room ([ErrOutboxFull]). If ctx ends first, the error has
// its cause. A message that is larger than Outbox.Bytes is refused at once.
func (c *Conn) SendWait(ctx context.Context, o Outgoing) error { return c.sender.sendWait(ctx, o) }

// These are the reasons why a message was dropped. Others are [ErrNotReady],
// [net.ErrClosed], the cause of a context, and the error of a connection.
var (
	ErrOutboxFull  = outbox.ErrFull        // there was no room: see Outbox.Overflow
	ErrReplaced    = outbox.ErrReplaced    // with OutboxReplaceKey
	ErrExpired     = outbox.ErrExpired     // Outgoing.Deadline or Outbox.Age has passed
	ErrSessionLost = outbox.ErrSessionLost // and the message was for that session only, or not kept
)

// WriteError reports a message that was not written, and its fate. Use errors.Is to learn why:
// [ErrNotReady], [ErrSessionLost], [net.ErrClosed], or the cause of the context that was given with
// the message.
//
// Behind ErrNotReady and ErrSessionLost there may be another error, such as the failure of the last
// dial, which errors.Is and errors.As find too. Only [context.DeadlineExceeded], [context.Canceled]
// and net.ErrClosed are not found there, because a dial that timed out is not the end of the
// message's context, and a lost connection is not a closed Conn.
type WriteError struct {
	Fate    Fate   // FateDropped or FateUnknown
	Session uint64 // the session that tried to write it; 0: none
	Err     error  // why it was not written
}

func (e *WriteError) Error() string { return fmt.Sprintf("message %v: %v", e.Fate, e.Err) }

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// Fate says whether a message was sent. Each message has exactly one.
type Fate uint8

// The fates.
const (
	FateWritten Fate = iota // the whole message was handed to the kernel, so that the peer may have it
	FateDropped             // not a byte was sent, so that it does no harm to send it again
	FateUnknown             // the connection died while the message was being written: the peer may have it, or not
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

// ErrNotReady is the reason why a message was dropped while no session was ready.
var ErrNotReady = errors.New("no session is ready")

// UnsentError is the error of [Conn.Shutdown] if messages could not be sent. Outbox.OnReceipt, if
// set, is called with each of them too.
type UnsentError struct {
	Unsent []Receipt // one for each message, in the order in which their fates were settled
	Err    error     // why Shutdown no longer waited for them; nil: it did not stop waiting
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

// options returns the options of the outbox.
func (s *sender) options() outbox.Options {
	o := &s.life.o.Outbox
	options := outbox.Options{
		Limits:  queue.Limits{Messages: o.Messages, Bytes: o.Bytes, Full: queue.Policy(o.Overflow)},
		Age:     o.Age,
		Down:    outbox.WhenDown(s.life.o.WhenDown),
		Refusal: s.state.refusal,
		Await:   s.life.hooks.Await,
	}
	if o.OnReceipt != nil {
		s.receipts.Init(&s.life.hooks, s.life.watch.SlowAfter())
		ctx := receiptContext{&s.life.Context}
		options.Receipt = func(r *outbox.Receipt) {
			defer s.receipts.Leave(s.receipts.Enter(&onReceipt)) // even if OnReceipt ends this goroutine
			o.OnReceipt(ctx, receiptOf(r))
		}
	}
	return options
}

var onReceipt = "OnReceipt"

// receiptContext is the context of OnReceipt. A method that must not wait there recognizes it by
// its value for receiptKey.
type receiptContext struct{ *xsync.Context }

// receiptKey is the key of the life of the Conn in a receiptContext.
type receiptKey struct{}

// Value returns the life of the Conn for receiptKey.
func (c receiptContext) Value(key any) any {
	if key == (receiptKey{}) {
		return c.Context
	}
	return nil
}

// inReceipt reports whether ctx is, or comes from, the context of OnReceipt.
func (s *sender) inReceipt(ctx context.Context) bool {
	life, _ := ctx.Value(receiptKey{}).(*xsync.Context)
	return life == &s.life.Context
}

// receiptOf returns a receipt of the outbox for the user.
func receiptOf(r *outbox.Receipt) Receipt {
	return Receipt{
		Outgoing: Outgoing(r.Out), Fate: Fate(r.Fate), Session: r.Session, Tries: r.Tries,
		Began: r.Began, Ended: r.Ended, Err: r.Err,
	}
}

// keeps returns the function that decides whether a message outlives the session of l, which was lost
// because of cause. It is nil if each message does.
func (l *served) keeps(life *lifetime, cause error) outbox.Keeps {
	if life.o.Outbox.Keep == nil {
		return nil
	}
	return func(o outbox.Outgoing) bool {
		outer := l.calls.Enter(&keep)
		kept := life.o.Outbox.Keep(&life.Context, Outgoing(o), cause)
		l.calls.Leave(outer) // not if Keep has ended this goroutine: see keeper.abandon
		return kept
	}
}
