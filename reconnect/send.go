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

// Outgoing is a message for [Conn.Send] with its terms.
type Outgoing struct {
	// Message belongs to the Conn once Send has accepted it, until Outbox.OnReceipt is called with it.
	// Without OnReceipt the caller must not change its data again.
	conn.Message

	// Deadline is the time after which no write of the message begins. (For a connection that writes a
	// batch one message after the other, as a [conn.WebSocket] in a browser does, no write of the batch
	// begins.) A write that has begun continues; see [Receipt.Began]. The zero time means no deadline
	// except Outbox.Age.
	Deadline time.Time

	// Key names the subject of the message: see [OutboxReplaceKey].
	Key string

	// Session is the only session by which the message may be sent; once it is lost the message is
	// dropped, with ErrSessionLost. Zero means any session.
	Session uint64

	// Repeatable says that the message may arrive twice. With [WhenDownKeep], if its fate would be
	// FateUnknown, the next session sends it again, as often as necessary until its Deadline or
	// Outbox.Age has passed.
	Repeatable bool

	// Tag is for the caller's use.
	Tag any
}

// Receipt has the fate of a message that Send accepted.
type Receipt struct {
	Outgoing Outgoing // its data belongs to the caller again
	Fate     Fate
	Session  uint64    // session that wrote it, or tried last; 0 if none
	Tries    int       // number of sessions that tried it; above 1 only if Repeatable
	Began    time.Time // start of its last write; zero if none
	Ended    time.Time // end of that write
	Err      error     // why it was not written; nil if it was
}

// Send queues a message and returns without waiting for the network. If the error is nil the message was
// accepted, and Outbox.OnReceipt, if set, is called with its fate exactly once. Otherwise OnReceipt is
// not called with it, and the error is a *[WriteError].
//
// Messages, including those of [Conn.Write], are written in the order in which they were accepted. While
// no session is ready Send rejects a message, with [ErrNotReady], or keeps it until OnSession of the
// next session has returned: see Options.WhenDown. On a [conn.Transport], messages that wait at the same
// time are handed to the kernel together, up to 64 of them or 32 KiB. None is delayed for that.
func (c *Conn) Send(o Outgoing) error {
	if err := c.sender.queue().Accept((*outbox.Outgoing)(&o)); err != nil {
		return c.sender.unwritten(FateDropped, 0, err)
	}
	return nil
}

// SendWait is like Send, but waits while there is no space ([ErrOutboxFull]). If ctx is done first, the
// error wraps its cause.
func (c *Conn) SendWait(ctx context.Context, o Outgoing) error { return c.sender.sendWait(ctx, o) }

// Reasons why a message was dropped. Others are [ErrNotReady], [net.ErrClosed], the cause of a context,
// and the error of a connection.
var (
	ErrOutboxFull  = outbox.ErrFull        // see Outbox.Overflow
	ErrReplaced    = outbox.ErrReplaced    // with OutboxReplaceKey
	ErrExpired     = outbox.ErrExpired     // Outgoing.Deadline or Outbox.Age has passed
	ErrSessionLost = outbox.ErrSessionLost // the message was for that session only, or not kept
)

// WriteError reports a message that was not written, and its fate. Use errors.Is to learn why:
// [ErrNotReady], [ErrSessionLost], [net.ErrClosed], or the cause of the context that was given with the
// message.
//
// ErrNotReady and ErrSessionLost may wrap another error, such as the failure of the last dial, which
// errors.Is and errors.As find too; except [context.DeadlineExceeded], [context.Canceled] and
// net.ErrClosed, which would be mistaken for the end of the message's context or of the Conn.
type WriteError struct {
	Fate    Fate   // FateDropped or FateUnknown
	Session uint64 // session that tried to write it; 0 if none
	Err     error  // why it was not written
}

func (e *WriteError) Error() string { return fmt.Sprintf("message %v: %v", e.Fate, e.Err) }

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// Fate says whether a message was sent. Each message has exactly one.
type Fate uint8

const (
	FateWritten Fate = iota // handed to the kernel completely: the peer may have it
	FateDropped             // not a byte was sent: sending it again is harmless
	FateUnknown             // the connection died during the write: the peer may have it
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

// ErrNotReady is the reason for dropping a message while no session was ready.
var ErrNotReady = errors.New("no session is ready")

// UnsentError is the error of [Conn.Shutdown] if messages could not be sent. Outbox.OnReceipt is called
// with each of them too.
type UnsentError struct {
	Unsent []Receipt // in the order in which their fates were settled
	Err    error     // why Shutdown stopped waiting for them; nil if it did not
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
