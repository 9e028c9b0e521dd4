package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// Options are the options of [New]. A nil *Options is fine: then [Conn.Read] or [Conn.Messages]
// returns the messages, there is no login, and Write fails at once while no session is ready.
type Options struct {
	// OnSession makes a new connection ready: it logs in, subscribes, and waits for the answer, by Opening.Read
	// or call.Client.Ask (Client.Do would return an error). After an error of OnSession the next attempt follows
	// as the policy says. So mark the error of a login that was refused: by [backoff.Slow] if a person has to
	// act, by [backoff.Refresh] if a new token helps, by [backoff.Permanent] if nothing helps. If a close code
	// says the refusal, see [backoff.ClassifyRefusals]. OnSession has sole use of the connection, and a goroutine
	// of its own, which the supervisor waits for. Its context ends after OpenTimeout, and with the connection;
	// when the context ends the connection is cut. For what it may call see Callbacks in the package's
	// documentation. Default: a connection is ready immediately.
	OnSession func(ctx context.Context, o *Opening) error

	// OpenTimeout is the limit on OnSession. Default: 30 s. Negative: none.
	OpenTimeout time.Duration

	// OnMessage is called with each message as it comes in (push), in the supervisor's goroutine,
	// which reads the connection; [Opening.Deliver] calls it in the goroutine of OnSession. The
	// data of m is valid until OnMessage returns. Its context ends with the session; if a write or a
	// ping fails meanwhile, a second later. Default: [Conn.Read] and [Conn.Messages] return the
	// messages (pull).
	//
	// While OnMessage runs, the connection is not read and the peer's pings are not answered, so
	// that the peer may hang up. If it takes long, let it hand the messages on, or use Read
	// instead. [Trace.SlowHandler] reports that it is slow.
	//
	// No next session can come while OnMessage, OnSeam or Outbox.Keep runs, because they run in the
	// supervisor's goroutine. A Write that waits for a session, Await and Shutdown end there with
	// the context that they get, so pass them ctx. For all methods see Callbacks in the package's
	// documentation.
	OnMessage func(ctx context.Context, m Message)

	// OnSeam is called with each seam, in order with OnMessage and in the supervisor's goroutine.
	// Its context ends with the Conn. With MarkRefetch OnSeam gets the marks too: see there. It is
	// an error without OnMessage, because Read returns the seams. For what it may call see Callbacks
	// in the package's documentation. Default: none.
	OnSeam func(ctx context.Context, s *Seam)

	// Inbox bounds the messages that wait to be read. It is an error with OnMessage.
	Inbox Inbox

	// WhenDown says what Write and Send do while no session is ready. Default: WhenDownFail.
	WhenDown WhenDown

	// Outbox bounds the messages that wait to be sent, and has the callback for their fates.
	Outbox Outbox

	// KeepAlive writes a message when nothing was written for a while. Default: nothing.
	KeepAlive KeepAlive

	// Pace limits the messages and pings that we send by one connection, also from OnSession, Probe
	// and KeepAlive, to so many in any interval: see [budget.Window]. A message above the limit
	// waits, in order. Answers to the peer's pings and the close frame neither wait nor count. A
	// probe that is still waiting when its time is over does not count as unanswered. Each
	// connection has a window of its own: while one session replaces another twice as much may be
	// sent. Default: no limit.
	Pace budget.Window

	// Layers are what is above the connection: see [Layer]. Default: none.
	Layers []*Layer

	// Resumable says that OnSession may call [Opening.Resumed]. Then the seam after a session comes
	// when the next session is ready or has delivered its first message, because only then it is
	// known whether anything is missing. Until then only Trace and Status show the loss. OnSeam may
	// run in the goroutine of OnSession. If a session is lost during its rotation, the seam comes
	// at once, and is not Resumed. Default: the seam comes at once.
	Resumable bool

	// MarkRefetch says that the application fetches what it has missed, for instance a snapshot by
	// HTTP. Then there is a mark in the stream for each session: a Seam with Refetch set, Lost and
	// Dropped 0, and the number of the session. From there on a refetch misses nothing, because what
	// the server sends later comes by that session. See [Seam].
	//
	// The mark comes when all of these have happened: OnSession has returned, the seam of the
	// session before was given, and each [Opening.HoldRefetch] is released. A subscription.Set holds
	// the mark until the session has the subscriptions that were wanted when it began. If the session
	// ends before that, or before the mark is read, there is no mark; the next session has its own.
	//
	// OnSeam gets the mark: MarkRefetch is an error with OnMessage and without OnSeam. The context of
	// that call ends with the session. If a layer was the last to hold the mark, the call has a
	// goroutine of its own, never at the same time as OnMessage or another OnSeam. Default: no marks.
	MarkRefetch bool

	// Rotate says when a session is replaced by another. Default: when [Conn.Rotate] asks for it.
	Rotate Rotation

	// CloseTimeout is how long Shutdown, [Conn.Redial] and a rotation wait for the peer's answer to a
	// close. Shutdown also ends with its context. Redial and a rotation wait 1 s at most, and Redial
	// does not wait for a silent peer: a peer that is probed, and has sent nothing for half of
	// Liveness.Limit. Default: 5 s. Negative: Redial and a rotation cut the connection at once, and
	// Shutdown waits for the default.
	CloseTimeout time.Duration

	// Liveness says when a silent peer is dead.
	Liveness Liveness

	// Stall says when a peer that is alive, but sends no messages, is given up. Default: never.
	Stall Stall

	// Run says how to redial: policy, verdicts, gate, trace. Its Kick must be nil, because a Conn has
	// the method [Conn.Kick].
	Run RunOptions
}

// Inbox bounds the messages that have come in and wait to be read. The zero value has the
// defaults.
type Inbox struct {
	// Messages is how many may wait. Default: 64. Negative: an error.
	Messages int

	// Bytes is how much data they may have together. There is no room once they have that much, so the
	// last of them may exceed the limit. With InboxDropOldest only a single message may. Default: 16 MiB.
	// Negative: an error.
	Bytes int

	// Overflow says what happens to a message for which there is no room. Default: InboxBlock.
	Overflow InboxOverflow
}

// InboxOverflow says what happens to a message for which there is no room in the [Inbox].
type InboxOverflow uint8

// The policies of the inbox.
const (
	// InboxBlock stops reading the connection until there is room, so that the peer must
	// slow down.
	InboxBlock InboxOverflow = iota

	// InboxDropOldest drops the oldest messages until there is room. A Seam with their number
	// takes their place.
	InboxDropOldest

	// InboxDisconnect ends the session, with the cause ErrInboxFull.
	InboxDisconnect

	// InboxDiscard keeps no message at all, for a program that only writes. Then Read is an error.
	InboxDiscard
)

// WhenDown says what [Conn.Write] and [Conn.Send] do while no session is ready.
type WhenDown uint8

// The policies for sending while no session is ready.
const (
	// WhenDownFail lets both fail at once, with ErrNotReady. When a session is lost, the
	// messages that still wait in the queue are dropped.
	WhenDownFail WhenDown = iota

	// WhenDownWait lets Write wait for the next session, until its context ends. Send fails
	// at once, and its messages are dropped as with WhenDownFail.
	WhenDownWait

	// WhenDownKeep lets Write wait, and Send queue its message. When a session is lost, the
	// messages that still wait are kept for the next, unless Outbox.Keep says otherwise.
	WhenDownKeep
)

// Outbox bounds the messages of [Conn.Send] that wait to be sent, and has the callback for their
// fates. The zero value has the defaults.
type Outbox struct {
	// OnReceipt is called exactly once with the fate of each message that Send accepted, and gives
	// the data of the message back. The calls come one after the other, in the order in which the
	// fates were settled; messages that were written keep the order of Send. They have a goroutine
	// of their own, which ends before the Conn does. The context ends with the Conn. While OnReceipt
	// runs messages go on being written, but when as many receipts wait for it as messages may wait,
	// Send refuses more. [Trace.SlowHandler] reports a call that takes long. With this context Write
	// and AwaitSession do not wait for a session, but return ErrNotReady while none is ready,
	// because OnSession may wait for OnReceipt. For the same reason SendWait does not wait for
	// room. To wait, call them in another goroutine with another context. Default: none. The fates are
	// then only counted, in Stats.Written, Dropped and Unknown.
	OnReceipt func(ctx context.Context, r Receipt)

	// Messages is how many may wait. Default: 1024. Negative: an error.
	Messages int

	// Bytes is how much data they may have together. A larger message is refused. Default: 16 MiB.
	// Negative: an error.
	Bytes int

	// Age is how long a message may wait. Then it is dropped, with ErrExpired. Default: 5 min.
	// Negative: for ever, or until its Deadline.
	Age time.Duration

	// Overflow says what happens to a message for which there is no room. Default: OutboxRefuse.
	Overflow OutboxOverflow

	// Keep decides about each message of Send that still waits when a ready session is lost because
	// of cause. True keeps the message for the next session. False drops it, with ErrSessionLost, and
	// OnReceipt gets it. Keep is called in the supervisor's goroutine, and must not change the data;
	// its context ends with the Conn. While Keep looks at a message neither that message nor any
	// behind it is written, and if it is dropped meanwhile OnReceipt gets it after Keep has
	// returned. For what it may call see Callbacks in the package's documentation. Keep is an error
	// without WhenDownKeep. Default: all are kept.
	Keep func(ctx context.Context, o Outgoing, cause error) bool
}

// OutboxOverflow says what happens to a message of [Conn.Send] for which there is no room in the
// [Outbox].
type OutboxOverflow uint8

// The policies of the outbox.
const (
	// OutboxRefuse refuses the new message: Send fails with ErrOutboxFull, and SendWait waits
	// for room.
	OutboxRefuse OutboxOverflow = iota

	// OutboxDropOldest drops the oldest messages until there is room. OnReceipt gets each of
	// them, with ErrOutboxFull.
	OutboxDropOldest

	// OutboxReplaceKey drops the message that waits with the same [Outgoing.Key], whether the
	// outbox is full or not, and puts the new one at the end of the queue. A message whose key
	// no waiting message has is refused while the outbox is full.
	OutboxReplaceKey
)

// Liveness says when a peer is dead. A peer that was silent for a third of Limit is probed, after two thirds
// again, and at the limit the connection is cut, with [ErrSilent]. A probe is the protocol's ping, or Probe. Signs
// of life are any byte from the peer, the answer to a ping, and room that the peer makes for the rest of a large
// message. After the machine was suspended the peer is probed at once, and the connection is cut if nothing comes
// within a third of the limit, or in 5 s if Limit is negative and ProbeEvery is set.
//
// There is no verdict on the peer
//
//   - without a way to probe it;
//   - while the application does not read: while OnMessage runs, or while the inbox is full and its
//     policy is InboxBlock;
//   - for time for which the process was stopped.
//
// The limit learns, because a busy peer may answer late. Each session in a row that was ready, was
// probed and has ended as silent doubles the limit of the next one, up to 8 times Limit. While the
// limit has grown each session is probed as soon as it is ready and somebody reads it. Limit holds again
//
//   - when a ping is answered within two thirds of Limit; with Probe, when anything comes within
//     that time after it;
//   - after a session that has ended otherwise, unless that session was once silent for Limit.
//
// [Trace.Overdue] reports ("reader") that nobody has read a full inbox for as long as Limit. A slow
// reader alone never costs the connection. But if the peer has ended the connection meanwhile, the
// session is lost. Only Linux can see that without reading. On other systems the end shows when
// there is room in the inbox, so a program that only writes should use [InboxDiscard].
type Liveness struct {
	// Limit is how long a peer may be silent, until the limit has grown. Default: 30 s.
	// Negative: for ever.
	Limit time.Duration

	// Probe asks the peer for a sign of life: it writes something that the peer answers. It need not
	// wait for the answer, which is received like any message. It runs in a goroutine of its own. Its
	// context ends after a third of the limit, and with the session. An error, unless the context has
	// ended, ends the session. For what it may call see Callbacks in the package's documentation.
	// Probe is an error with a negative Limit, unless ProbeEvery is set. Default: the protocol's
	// ping, if it has one.
	Probe func(ctx context.Context, write func(conn.Message) error) error

	// ProbeEvery probes the peer at this interval even if it is not silent, for a server that wants a
	// ping every so often. The interval counts from the last probe of any kind. Because one probe
	// follows another, a silent peer may be cut up to a third of Limit later than without
	// ProbeEvery. Default, and negative: never. Less than 1 ms: an error.
	ProbeEvery time.Duration

	now func() time.Time // the wall clock, which shows that the machine was suspended; tests set it
}

// ErrSilent is the cause of the end of a session whose peer was silent for [Liveness.Limit].
var ErrSilent = watch.ErrSilent

// Stall says when a connection is given up that brings no messages, although its peer may answer
// every ping. The cause is then [ErrStalled]. With each session in a row that was given up without a
// message the limit doubles, up to 32 times, because the market may be closed. There is no verdict
// while the application does not read.
type Stall struct {
	// Limit is how long there may be no message in a ready session. Default, and negative: for ever.
	Limit time.Duration

	// Expected reports whether messages are expected at a time, such as in a market's hours. The
	// silence counts from when it first does. It is called in the goroutine of a timer when the
	// session is ready, and then 8 times in Limit. For what it may call see Callbacks in the
	// package's documentation. It is an error without a Limit. Default: always.
	Expected func(time.Time) bool
}

// ErrStalled is the cause of the end of a session that brought no message for [Stall.Limit].
var ErrStalled = watch.ErrStalled

func (o *Options) validate() error {
	switch {
	case o.OnMessage != nil && o.Inbox != Inbox{}:
		return errors.New("reconnect: Options.OnMessage and Options.Inbox: either push or pull")
	case o.OnSeam != nil && o.OnMessage == nil:
		return errors.New("reconnect: Options.OnSeam needs OnMessage; without OnMessage, Read returns the seams")
	case o.MarkRefetch && o.OnMessage != nil && o.OnSeam == nil:
		return errors.New("reconnect: Options.MarkRefetch with OnMessage needs OnSeam, which gets the marks")
	case o.MarkRefetch && o.Inbox.Overflow == InboxDiscard:
		return errors.New("reconnect: Options.MarkRefetch with InboxDiscard: there is no stream for the marks")
	case o.WhenDown > WhenDownKeep:
		return fmt.Errorf("reconnect: Options.WhenDown is none of the policies: %d", o.WhenDown)
	case o.Liveness.Limit < 0 && o.Liveness.ProbeEvery <= 0 && o.Liveness.Probe != nil:
		return errors.New("reconnect: Options.Liveness.Probe with a negative Limit, and without ProbeEvery, is never called")
	case tooShort(o.Liveness.ProbeEvery):
		return shortError("Liveness.ProbeEvery", o.Liveness.ProbeEvery)
	case o.Stall.Limit <= 0 && o.Stall.Expected != nil:
		return errors.New("reconnect: Options.Stall.Expected without a Limit is never asked")
	case o.Run.Kick != nil:
		return errors.New("reconnect: Options.Run.Kick is not for a Conn: use its method Kick")
	}
	if err := o.Pace.Validate(); err != nil {
		return fmt.Errorf("reconnect: Options.Pace: %w", err)
	}
	in, out := &o.Inbox, &o.Outbox
	return cmp.Or(
		validateLimits("Inbox", in.Messages, in.Bytes, in.Overflow, InboxDiscard), o.KeepAlive.validate(), validateLayers(o.Layers),
		o.Rotate.validate(o.Run.OneConnection), validateLimits("Outbox", out.Messages, out.Bytes, out.Overflow, OutboxReplaceKey),
		out.validate(o.WhenDown))
}

func validateLimits[O ~uint8](queue string, messages, bytes int, overflow, last O) error {
	switch {
	case messages < 0:
		return fmt.Errorf("reconnect: Options.%s.Messages is negative: %d", queue, messages)
	case bytes < 0:
		return fmt.Errorf("reconnect: Options.%s.Bytes is negative: %d", queue, bytes)
	case overflow > last:
		return fmt.Errorf("reconnect: Options.%s.Overflow is none of the policies: %d", queue, overflow)
	}
	return nil
}

func (o *Outbox) validate(down WhenDown) error {
	if o.Keep != nil && down != WhenDownKeep {
		return errors.New("reconnect: Options.Outbox.Keep is asked only if Options.WhenDown is WhenDownKeep")
	}
	return nil
}

// KeepAlive writes a message when nothing was written for a while, for a service that wants to
// hear from its clients, such as every 8 s. It is no probe ([Liveness]): nobody waits for an answer.
type KeepAlive struct {
	// Every is how long nothing may be written before Message is. Pings do not count. Default, and
	// negative: for ever. Less than 1 ms: an error.
	Every time.Duration

	// Message returns the message to write, and must not wait. It is called in the goroutine of a
	// timer. For what it may call see Callbacks in the package's documentation. A message that
	// cannot be written ends the session. Either of Every and Message without the other is an error.
	Message func() conn.Message
}

func (o *KeepAlive) validate() error {
	switch {
	case o.Every > 0 && o.Message == nil:
		return errors.New("reconnect: Options.KeepAlive.Every without Message: nothing to write")
	case o.Every <= 0 && o.Message != nil:
		return errors.New("reconnect: Options.KeepAlive.Message without Every is never written")
	case tooShort(o.Every):
		return shortError("KeepAlive.Every", o.Every)
	}
	return nil
}
