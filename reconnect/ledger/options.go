package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// Encode returns the message in which an entry goes to the peer. Encode is called before each
	// write of the entry, in one goroutine at a time, and no lock is held. The message is written
	// before the next call, so Encode may use the same memory again. An error means that the entry
	// can never be sent: see [OutcomeRefused]. Default: a Binary message with the data alone, for a
	// protocol in which both ends count.
	//
	// An Encode that leaves Seq out, such as the default, has limits, because the peer counts only
	// the messages that reach it. Age, DropOldest and ResetKeepNumbers cannot be used: without an
	// Encode they are an error. If a message is refused or damaged, the peer's count stays one
	// behind, so that the last message stays unacknowledged, until a session begins with an
	// unacknowledged message, which the peer then gets twice.
	Encode func(e Entry) (conn.Message, error)

	// Ack reports whether m is an acknowledgement, and up to which number the peer acknowledges
	// every message. An acknowledgement does not reach the reader of the Conn. Ack is called with
	// each received message, in the goroutine that reads: it must be quick, and must not keep the
	// data. A number that was never sent ends the session, as by [reconnect.Conn.Redial]. Default:
	// the reader calls AckedTo or Acked.
	Ack func(m reconnect.Message) (seq uint64, ok bool)

	// Messages is how many messages may be unacknowledged. Default: 1024. Negative: an error.
	Messages int

	// Bytes is how much data the unacknowledged messages may have together. Add refuses a message
	// that is larger. Default: 16 MiB. Negative: an error.
	Bytes int

	// Age is how long a message may be unacknowledged, by the wall clock, including the time
	// between two runs of the program. An older message is dropped, with [OutcomeExpired]. If the
	// message was written, the peer may have it. If the clock is set back, the age of the messages
	// begins anew with the next Add. Default: no limit. Negative: no limit.
	Age time.Duration

	// DropOldest makes room for a message by dropping the oldest, with [OutcomeDropped]. It is for
	// telemetry: when a device has been away for days, its newest readings matter most. If the dropped
	// messages were not sent yet, the peer sees a gap in the numbers. Default: Add fails with ErrFull,
	// and AddWait waits.
	DropOldest bool

	// OnReset says what happens to the messages that are unacknowledged when the peer has
	// forgotten us: see [Ledger.Resume]. Default: ResetRenumber.
	OnReset Reset

	// OnDone is called exactly once for each message, with its outcome. No lock is held. OnDone may
	// call Add, and must wait neither for the Ledger nor for the end of the Conn. Several calls may
	// run at once, because each runs in the goroutine that has caused the outcome:
	//
	//   - OutcomeAcknowledged: the caller of AckedTo, Acked, Resume or ResumeEpoch.
	//   - OutcomeExpired: a goroutine of the timer, or the goroutine that writes.
	//   - OutcomeDropped: the caller of Add or AddWait; with a Store, the goroutine that stores.
	//   - OutcomeForgotten: the goroutine in which the session becomes ready; with a Store, the
	//     goroutine that stores.
	//   - OutcomeRefused: the goroutine that writes.
	//   - OutcomeDamaged: the caller of reconnect.New, before New returns.
	//   - OutcomeLeft: the goroutine in which the Conn ends, before the Conn is done.
	//
	// A call may also bring outcomes that others have caused at the same time. A slow OnDone holds
	// up the goroutines that write and store. A call in a goroutine of the program, such as in
	// AckedTo, may last longer than the Conn. Default: none.
	OnDone func(r Settled)

	// OnStoreError is called with each error of Store.Apply, under the same rules as OnDone, so that a full
	// or broken disk is noticed. An Add whose message could not be stored also returns the error. A settled
	// message that could not be deleted is deleted with the next change; if the program ends before that
	// change, the message is sent again in the next run. Default: none.
	OnStoreError func(err error)

	// Store keeps the messages for the next run of the program. If its Apply fails, Add returns the error,
	// or the session with which new numbers begin is ended. Default: none, the messages are in memory only.
	Store Store
}

// Reset says what happens to the unacknowledged messages when the peer has forgotten us.
type Reset uint8

// The policies for a peer that has forgotten.
const (
	// ResetRenumber gives each message a new Seq, and sends it: at least once. The peer may get some
	// twice, under two numbers, if it had got them before.
	ResetRenumber Reset = iota

	// ResetReport ends each message with Sent set, with [OutcomeForgotten], and does not send it
	// again. The others get a new Seq, and are sent. Messages that were loaded from a
	// Store count as sent, unless ResumeEpoch shows that no session was ever ready.
	ResetReport

	// ResetKeepNumbers sends all unacknowledged messages again under their old Seq, and new messages
	// after them: at least once. It is for a protocol in which a number stands for one message for
	// ever, such as a chat whose server may be replaced by one that knows less. It is no error then
	// that the peer has less than it has acknowledged before; the messages between are gone. It is
	// an error that the peer has more than was ever sent, with one exception: if the peer has an
	// epoch and no session was ever ready, the Store was lost, and numbers begin after the peer's.
	ResetKeepNumbers
)

func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	switch {
	case c.Messages < 0:
		return c, fmt.Errorf("ledger: Options.Messages: %d is negative", c.Messages)
	case c.Bytes < 0:
		return c, fmt.Errorf("ledger: Options.Bytes: %d is negative", c.Bytes)
	case c.OnReset > ResetKeepNumbers:
		return c, fmt.Errorf("ledger: Options.OnReset: %d is not one of the Reset constants", c.OnReset)
	case c.Encode == nil && (c.Age > 0 || c.DropOldest || c.OnReset == ResetKeepNumbers):
		return c, errors.New("ledger: Options.Encode is missing: Age, DropOldest and ResetKeepNumbers need an Encode that sends the number of each message")
	case c.OnStoreError != nil && c.Store == nil:
		return c, errors.New("ledger: Options.OnStoreError needs a Store: without one it is never called")
	}
	if c.Encode == nil {
		c.Encode = func(e Entry) (conn.Message, error) { return conn.BinaryMessage(e.Data), nil }
	}
	c.Messages, c.Bytes = cmp.Or(c.Messages, 1024), cmp.Or(c.Bytes, 16<<20)
	c.Age = max(c.Age, 0)
	return c, nil
}
