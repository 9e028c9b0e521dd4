package reconnect

import (
	"context"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// Options are the options of [New]. A nil *Options has the defaults. See Callbacks in the package
// documentation.
type Options struct {
	// OnSession makes a new connection ready: it logs in, subscribes, and waits for the response, by
	// Opening.Read or call.Client.Ask (not Client.Do). It runs in its own goroutine. Its context is
	// canceled after OpenTimeout or with the connection, which is then closed. Default: a connection is
	// ready immediately.
	//
	// An error fails the attempt. Mark the error of a rejected login: with [backoff.Slow] if a person
	// has to act, [backoff.Refresh] if a new token helps, [backoff.Permanent] if nothing helps. For
	// rejections by close code see [backoff.ClassifyRefusals].
	OnSession func(ctx context.Context, o *Opening) error

	// OpenTimeout is the limit on OnSession, from the last [Opening.Progress] on. Default: 30 s. Negative: none.
	OpenTimeout time.Duration

	// OnMessage is called with each received message (push) in the supervisor's goroutine, or by
	// [Opening.Deliver] in that of OnSession. The data of m is valid until OnMessage returns. Its
	// context is canceled with the session, or 1 s after a write or a ping fails. Default: [Conn.Read]
	// and [Conn.Messages] return the messages (pull).
	//
	// While OnMessage runs, the connection is not read and the peer's pings are not answered, so that
	// the peer may disconnect. If handling is slow, use Read.
	OnMessage func(ctx context.Context, m Message)

	// OnSeam is called with each seam and mark, in order with OnMessage, in the supervisor's goroutine;
	// for exceptions see Resumable and MarkRefetch. It is an error without OnMessage.
	OnSeam func(ctx context.Context, s *Seam)

	// Inbox is an error with OnMessage.
	Inbox Inbox

	// WhenDown defaults to WhenDownFail.
	WhenDown WhenDown

	Outbox Outbox

	KeepAlive KeepAlive

	// Pace limits the messages and pings written to one connection, including those of OnSession, Probe
	// and KeepAlive. Messages above the limit wait, in order. Responses to pings and the close frame
	// neither wait nor count; a probe that waits does not count as unanswered. During a rotation each
	// connection has the whole limit. Default: no limit.
	Pace budget.Window

	Layers []*Layer

	// Resumable allows OnSession to call [Opening.Resumed]. The seam after a session then comes when the
	// next session is ready or has delivered its first message; until then only Trace and Status show
	// the loss. OnSeam may run in the goroutine of OnSession. If a session is lost during its rotation,
	// the seam comes immediately and is not Resumed.
	Resumable bool

	// MarkRefetch adds a mark to the stream for each session: a [Seam] with Refetch set, and with Lost
	// and Dropped 0. A refetch from there on misses nothing, because what the server sends later comes by that
	// session.
	//
	// The mark comes once OnSession has returned, the seam of the previous session was delivered, and
	// each [Opening.HoldRefetch] is released. A subscription.Set holds the mark until the session has
	// the subscriptions that were wanted when it began. A session that ends before its mark is read has
	// none.
	//
	// OnSeam gets the mark; MarkRefetch is an error with OnMessage and without OnSeam. The call may have
	// its own goroutine, but never overlaps OnMessage or another OnSeam.
	MarkRefetch bool

	// Rotate says when a session is replaced. Default: when [Conn.Rotate] requests it.
	Rotate Rotation

	// CloseTimeout limits how long Shutdown, [Conn.Redial] and a rotation wait for the peer's response
	// to a close. Redial and a rotation wait 1 s at most, and Redial not at all for a silent peer: one
	// that is probed and has sent nothing for half of Liveness.Limit. Default: 5 s. Negative: Redial and
	// a rotation drop the connection immediately, and Shutdown waits for the default.
	CloseTimeout time.Duration

	Liveness Liveness

	Stall Stall

	Run RunOptions
}

// Inbox bounds the unread messages.
type Inbox struct {
	// Messages is the maximum number of messages. Default: 64. Negative: an error.
	Messages int

	// Bytes is the size of their data at which the inbox is full. The last message may exceed it; with
	// InboxDropOldest only a single message may. Default: 16 MiB. Negative: an error.
	Bytes int

	// Overflow defaults to InboxBlock.
	Overflow InboxOverflow
}

// InboxOverflow says what happens when the [Inbox] is full.
type InboxOverflow uint8

const (
	// InboxBlock stops reading until there is space.
	InboxBlock InboxOverflow = iota

	// InboxDropOldest drops the oldest messages. A Seam with their number replaces them.
	InboxDropOldest

	// InboxDisconnect ends the session with ErrInboxFull.
	InboxDisconnect

	// InboxDiscard keeps no messages, for a program that only writes.
	InboxDiscard
)

// WhenDown says what [Conn.Write] and [Conn.Send] do while no session is ready.
type WhenDown uint8

const (
	// WhenDownFail makes both fail immediately, with ErrNotReady. Queued messages are dropped when a
	// session is lost.
	WhenDownFail WhenDown = iota

	// WhenDownWait makes Write wait for the next session. For Send it is like WhenDownFail.
	WhenDownWait

	// WhenDownKeep makes Write wait, and Send queue its message. Queued messages are kept for the next
	// session, unless Outbox.Keep says otherwise.
	WhenDownKeep
)

// Outbox bounds the queued messages of [Conn.Send], and reports their fates.
type Outbox struct {
	// OnReceipt is called exactly once with the fate of each message that Send accepted. The calls are
	// sequential, in a goroutine of their own, in the order in which the fates were settled; written
	// messages keep the order of Send. Writing continues meanwhile, but once as many receipts wait as
	// Messages allows, Send rejects messages. Default: fates are only counted, in [Stats].
	//
	// Because OnSession may wait for OnReceipt, with the context of OnReceipt Write and AwaitSession return
	// ErrNotReady while no session is ready, and SendWait does not wait for space. To wait, use another
	// goroutine and context.
	OnReceipt func(ctx context.Context, r Receipt)

	// Messages is the maximum number of messages. Default: 1024. Negative: an error.
	Messages int

	// Bytes is the maximum size of their data. A larger message is rejected. Default: 16 MiB. Negative:
	// an error.
	Bytes int

	// Age is how long a message may wait before it is dropped with ErrExpired. Default: 5 min. Negative:
	// forever, or until its Deadline.
	Age time.Duration

	// Overflow defaults to OutboxRefuse.
	Overflow OutboxOverflow

	// Keep decides about each queued message of Send when a ready session is lost because of cause: true
	// keeps it for the next session, false drops it, with ErrSessionLost. Keep is called in the
	// supervisor's goroutine, and must not change the data. Meanwhile neither the message nor any behind
	// it is written; if it is dropped, OnReceipt gets it after Keep has returned. Keep is an error
	// without WhenDownKeep.
	Keep func(ctx context.Context, o Outgoing, cause error) bool
}

// OutboxOverflow says what happens when the [Outbox] is full.
type OutboxOverflow uint8

const (
	// OutboxRefuse rejects the new message: Send fails with ErrOutboxFull, and SendWait waits for space.
	OutboxRefuse OutboxOverflow = iota

	// OutboxDropOldest drops the oldest messages. OnReceipt gets each, with ErrOutboxFull.
	OutboxDropOldest

	// OutboxReplaceKey drops the queued message with the same [Outgoing.Key], whether the outbox is full
	// or not, and appends the new one. A message with a new key is rejected while the outbox is full.
	OutboxReplaceKey
)

// Liveness says when a peer is dead. A peer that was silent for a third of Limit is probed, after two
// thirds again, and at the limit the connection is dropped, with [ErrSilent]. Signs of life are any byte
// from the peer, a pong, and progress in accepting a large message. After the machine was suspended the
// peer is probed immediately, and the connection is dropped if nothing arrives within a third of the
// limit, or 5 s if Limit is negative and ProbeEvery is set.
//
// The peer is not judged
//
//   - without a way to probe it;
//   - while the application does not read: OnMessage runs, or the inbox is full with InboxBlock;
//   - for time for which the process was stopped.
//
// Because a busy peer may answer late, each silent session in a row that was ready and probed doubles
// the limit of the next, up to 8 times Limit. While the limit is raised, each session is probed as soon
// as it is ready and being read. Limit applies again
//
//   - when a ping is answered within two thirds of Limit; with Probe, when anything arrives within that
//     time;
//   - after a session that ended otherwise, unless it was once silent for Limit.
//
// While the application does not read, only Linux detects that the peer has closed the connection, so a
// program that only writes should use [InboxDiscard].
type Liveness struct {
	// Limit is how long a peer may be silent. Default: 30 s. Negative: forever.
	Limit time.Duration

	// Probe writes something that the peer answers; the response is received like any message. It runs
	// in its own goroutine. Its context is canceled after a third of the limit, and with the session. An
	// error, unless the context is done, ends the session. Probe is an error with a negative Limit,
	// unless ProbeEvery is set. Default: the protocol's ping, if any.
	Probe func(ctx context.Context, write func(conn.Message) error) error

	// ProbeEvery also probes a peer that is not silent, this long after the last probe. It may delay the
	// drop of a silent peer by up to a third of Limit. Default, and negative: never. Less than 1 ms: an
	// error.
	ProbeEvery time.Duration

	now func() time.Time // the wall clock, which shows that the machine was suspended; tests set it
}

// ErrSilent means that a session ended because the peer was silent for [Liveness.Limit].
var ErrSilent = watch.ErrSilent

// Stall says when a connection that brings no messages is given up, with [ErrStalled], although its peer
// may answer pings. Each such session in a row doubles the limit, up to 32 times. There is no verdict
// while the application does not read.
type Stall struct {
	// Limit is how long a ready session may be without a message. Default, and negative: forever.
	Limit time.Duration

	// Expected reports whether messages are expected at a time, such as in a market's hours. The silence
	// counts from when it first does. It is called in a timer's goroutine when the session is ready, and
	// then 8 times per Limit. It is an error without a Limit.
	Expected func(time.Time) bool
}

// ErrStalled means that a session ended because no message came for [Stall.Limit].
var ErrStalled = watch.ErrStalled

// KeepAlive writes a message when nothing was written for a while. Unlike a probe it expects no
// response.
type KeepAlive struct {
	// Every is how long nothing may be written before Message is. Pings do not count. Default, and
	// negative: forever. Less than 1 ms: an error.
	Every time.Duration

	// Message returns the message to write, and must not block. It is called in a timer's goroutine. A
	// message that cannot be written ends the session. Either of Every and Message without the other is
	// an error.
	Message func() conn.Message
}
