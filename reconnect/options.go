package reconnect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/conn"
)

// Options are the options of [New]. A nil *Options is fine: a connection that is
// read with [Conn.Read], needs no login and writes only while it is up.
type Options struct {
	// Name says in the events of Trace which connection it is. Default: nothing.
	Name string

	// OnSession makes a new connection ready: login, subscribe, wait for the
	// answer. It has sole use of the wire. It runs in a goroutine of its own,
	// which the supervisor waits for. Its context ends after OpenTimeout, and with
	// the connection; at the end of the context the connection is cut under it.
	// An error is a failed attempt. Default: ready at once.
	OnSession func(ctx context.Context, o *Opening) error

	// OpenTimeout is the limit on OnSession. Default: 30 s. Negative: none.
	OpenTimeout time.Duration

	// OnMessage takes every message as it comes (push). It runs in the goroutine
	// that reads; the data of m is valid until it returns, and ctx ends with the
	// session. While it runs the peer is not read and its pings are not answered,
	// so that a peer which wants answers may hang up: a handler that is slow should
	// hand its messages on, or they should be pulled. [Trace.SlowHandler] reports
	// one that is. Default: messages are taken with [Conn.Read] or [Conn.Messages]
	// (pull).
	//
	// No next session can come while it runs. A Write that waits for one, Await and
	// Shutdown end with the context that they are given: give them ctx.
	OnMessage func(ctx context.Context, m Message)

	// OnSeam is called for each lost connection, in order with OnMessage and in the
	// same goroutine. Its context ends with the Conn. It needs OnMessage; those who
	// pull get the Seam from Read. Default: none.
	OnSeam func(ctx context.Context, s *Seam)

	// Inbox holds what has come and was not read yet. Pull only.
	Inbox Inbox

	// WhenDown says what Write and Send do while no session is ready. Default:
	// WhenDownFail.
	WhenDown WhenDown

	// Outbox holds what [Conn.Send] has queued.
	Outbox Outbox

	// CloseTimeout is how long Shutdown, within its own context, and Redial wait for
	// the peer's answer to a close. Default: 5 s. Negative: cut at once.
	CloseTimeout time.Duration

	// Liveness finds out that a silent peer is dead.
	Liveness Liveness

	// Stall finds out that a peer which is alive sends no data. Default: off.
	Stall Stall

	// Run says how to redial: policy, verdicts, gate, trace. Its Kick must be
	// nil: a Conn has a method for that.
	Run RunOptions
}

// Inbox bounds what waits to be read. The zero value holds 64 messages or 16 MiB
// and then stops reading from the connection.
type Inbox struct {
	// Messages is how many may wait. Default: 64.
	Messages int

	// Bytes is how much data may wait; a single message may be larger. Default:
	// 16 MiB.
	Bytes int

	// Overflow says what happens to a message for which there is no room. Default:
	// OverflowBlock.
	Overflow Overflow
}

// Overflow is what happens to a message for which there is no room in the [Inbox] or the
// [Outbox].
type Overflow uint8

// The policies for what overflows.
const (
	OverflowBlock      Overflow = iota // it is not let in. Inbox: nothing is read until there is room, and the peer feels it. Outbox: Send fails with ErrOutboxFull, and SendWait waits
	OverflowDropOldest                 // the oldest are dropped until there is room. Inbox: a Seam with their number takes their place. Outbox: each gets its receipt, with ErrOutboxFull
	OverflowDisconnect                 // Inbox only: the session is lost, with cause ErrInboxFull
	OverflowDiscard                    // Inbox only: nothing is kept at all, for those who only write
	OverflowReplaceKey                 // Outbox only: a message takes the place of the one with its Key, full or not, at the end of the queue; without one it is refused when full
)

// WhenDown is what [Conn.Write] and [Conn.Send] do while no session is ready.
type WhenDown uint8

// The policies for sending while there is no session.
const (
	WhenDownFail WhenDown = iota // fail at once, with [ErrNotReady]; what waits in the queue when a session is lost is dropped
	WhenDownWait                 // Write waits for the next session, until its context ends; Send fails at once
	WhenDownKeep                 // Write waits; Send queues, and what waits when a session is lost is kept for the next
)

// Outbox bounds what waits to be sent, and hears what becomes of it. The zero
// value is right for those who only use [Conn.Write].
type Outbox struct {
	// OnReceipt is called with what became of each message that Send accepted: exactly
	// once each, one after the other, in the order in which their fates were
	// settled, which for those written is that of Send. It runs in a goroutine of
	// its own that ends before the Conn does; its context ends with the Conn. While
	// it is slow messages go on being written; but while as many receipts wait for
	// it as messages may wait, Send refuses more. Default: none, and Send is an error.
	OnReceipt func(ctx context.Context, r Receipt)

	// Messages is how many may wait. Default: 1024.
	Messages int

	// Bytes is how much data may wait. A larger message is refused. Default:
	// 16 MiB.
	Bytes int

	// Age is how long a message may wait; then it is dropped with ErrExpired.
	// Default: 5 min. Negative: for ever, or until its Deadline.
	Age time.Duration

	// Overflow says what happens when there is no room. Default: OverflowBlock.
	Overflow Overflow

	// Keep decides, for WhenDownKeep, about each message that waits when a ready
	// session is lost because of cause: true keeps it for the next session; false
	// hands it back: it is dropped with ErrSessionLost, and OnReceipt gets it. It runs in
	// the supervisor's goroutine; its context ends with the Conn. Default: all are
	// kept.
	Keep func(ctx context.Context, o Out, cause error) bool
}

// Liveness says when a peer is dead. Any byte received is life, and so is room that
// the peer makes for the rest of a large message; after a third of Limit without
// either the peer is probed, after two thirds again, and at the limit
// the connection is cut with [ErrSilent]. A connection that can neither ping nor
// be asked by Probe is not probed. No verdict is passed while the application
// does not read: while OnMessage runs, or the inbox is full and its policy is
// OverflowBlock. After the machine was suspended the peer is probed at the first look, and
// the connection is cut if nothing comes within a third of Limit.
//
// A full inbox that nobody reads for as long as Limit is reported by
// [Trace.Overdue] ("reader"). A slow reader is never cut for it. But if nothing was
// read for that long and the peer has ended or reset the connection meanwhile, which
// Linux tells without reading, the session is lost. On other systems the end is
// noticed when there is room in the inbox: a program that only writes should use
// [OverflowDiscard].
type Liveness struct {
	// Limit is how long a peer may be silent. Default: 30 s. Negative: for ever.
	Limit time.Duration

	// Probe asks the peer for a sign of life: it writes something that will be
	// answered; it need not wait for that, since the answer is received like any
	// message. It runs in a goroutine of its own, and its context ends after a
	// third of Limit and with the session. An error other than the context's ends
	// the session. Default: the ping of the protocol, if it has one; otherwise
	// there is no verdict.
	Probe func(ctx context.Context, write func(conn.Message) error) error

	// Now is the wall clock, to notice that the machine was suspended. Default:
	// [time.Now].
	Now func() time.Time
}

// Stall says when a connection by which no message comes is given up, with
// [ErrStalled], though its peer may answer every ping. As long as no data has come
// the limit is doubled with each session that was given up in a row, up to 32
// times: the market may be closed. No verdict is passed while the application does
// not read.
type Stall struct {
	// Limit is how long there may be no message in a ready session. Default, and
	// negative: for ever.
	Limit time.Duration

	// Expected reports whether data is expected at a time. The silence counts from
	// when it first does. It is called in the goroutine of a timer, when the session
	// is ready and then 8 times in Limit. Default: always.
	Expected func(time.Time) bool
}

// withDefaults returns a copy of o that is complete. A nil o has all the defaults.
func (o *Options) withDefaults(d Dialer) (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if err := r.validate(); err != nil {
		return r, err
	}
	if r.Name == "" {
		r.Name = r.Run.Name
	}
	r.Run.Name = r.Name
	if h, ok := d.(interface{ Host() string }); ok && r.Run.Gate != nil && r.Run.Host == "" {
		r.Run.Host = h.Host()
	}
	run, err := r.Run.withDefaults()
	if err != nil {
		return r, err
	}
	r.Run = *run
	if r.OpenTimeout == 0 {
		r.OpenTimeout = 30 * time.Second
	}
	if r.CloseTimeout == 0 {
		r.CloseTimeout = 5 * time.Second
	}
	if r.Liveness.Limit == 0 {
		r.Liveness.Limit = 30 * time.Second
	}
	if r.Liveness.Now == nil {
		r.Liveness.Now = time.Now
	}
	if r.Outbox.Messages == 0 {
		r.Outbox.Messages = 1024
	}
	if r.Outbox.Bytes == 0 {
		r.Outbox.Bytes = 16 << 20
	}
	if r.Outbox.Age == 0 {
		r.Outbox.Age = 5 * time.Minute
	}
	if r.Inbox.Messages == 0 {
		r.Inbox.Messages = 64
	}
	if r.Inbox.Bytes == 0 {
		r.Inbox.Bytes = 16 << 20
	}
	r.Stall.Limit = min(r.Stall.Limit, math.MaxInt64>>maxStalls)
	return r, nil
}

func (o *Options) validate() error {
	switch {
	case o.OnMessage != nil && o.Inbox != Inbox{}:
		return errors.New("reconnect: Options.OnMessage and Options.Inbox: either push or pull")
	case o.OnSeam != nil && o.OnMessage == nil:
		return errors.New("reconnect: Options.OnSeam without OnMessage: Read returns the seams to those who pull")
	case o.Inbox.Messages < 0:
		return fmt.Errorf("reconnect: Options.Inbox.Messages is negative: %d", o.Inbox.Messages)
	case o.Inbox.Bytes < 0:
		return fmt.Errorf("reconnect: Options.Inbox.Bytes is negative: %d", o.Inbox.Bytes)
	case o.Inbox.Overflow == OverflowReplaceKey:
		return errors.New("reconnect: Options.Inbox.Overflow cannot be OverflowReplaceKey, which is for the Outbox")
	case o.Inbox.Overflow > OverflowReplaceKey:
		return fmt.Errorf("reconnect: Options.Inbox.Overflow is none of the policies: %d", o.Inbox.Overflow)
	case o.WhenDown > WhenDownKeep:
		return fmt.Errorf("reconnect: Options.WhenDown is none of the policies: %d", o.WhenDown)
	case o.Liveness.Limit < 0 && o.Liveness.Probe != nil:
		return errors.New("reconnect: Options.Liveness.Probe with a negative Limit is never called")
	case o.Stall.Limit <= 0 && o.Stall.Expected != nil:
		return errors.New("reconnect: Options.Stall.Expected without a Limit is never asked")
	case o.Name != "" && o.Run.Name != "" && o.Run.Name != o.Name:
		return fmt.Errorf("reconnect: Options.Name is %q, and Options.Run.Name is %q: set one of them", o.Name, o.Run.Name)
	case o.Run.Kick != nil:
		return errors.New("reconnect: Options.Run.Kick is not for a Conn: use its method Kick")
	}
	return o.Outbox.validate(o.WhenDown)
}

func (o *Outbox) validate(down WhenDown) error {
	switch {
	case o.Messages < 0:
		return fmt.Errorf("reconnect: Options.Outbox.Messages is negative: %d", o.Messages)
	case o.Bytes < 0:
		return fmt.Errorf("reconnect: Options.Outbox.Bytes is negative: %d", o.Bytes)
	case o.Overflow == OverflowDisconnect, o.Overflow == OverflowDiscard:
		return errors.New("reconnect: Options.Outbox.Overflow cannot be OverflowDisconnect or OverflowDiscard, which are for the Inbox")
	case o.Overflow > OverflowReplaceKey:
		return fmt.Errorf("reconnect: Options.Outbox.Overflow is none of the policies: %d", o.Overflow)
	case o.OnReceipt == nil && (o.Messages != 0 || o.Bytes != 0 || o.Age != 0 || o.Overflow != 0 || o.Keep != nil):
		return errors.New("reconnect: Options.Outbox without OnReceipt: only Send uses it, which needs OnReceipt")
	case o.Keep != nil && down != WhenDownKeep:
		return errors.New("reconnect: Options.Outbox.Keep is asked only if Options.WhenDown is WhenDownKeep")
	case down == WhenDownKeep && o.OnReceipt == nil:
		return errors.New("reconnect: Options.WhenDown is WhenDownKeep, and Outbox.OnReceipt is missing, without which Send is an error")
	}
	return nil
}
