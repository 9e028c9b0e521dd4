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
	// Encode returns the message in which an entry is sent. It is called before each write of the entry, by one
	// goroutine at a time, with no lock held. The message is written before the next call, so Encode may reuse
	// its memory. After an error the entry is never sent: see [OutcomeRefused]. Default: a Binary message with
	// the data alone, for a protocol in which both ends count.
	//
	// If Encode leaves Seq out, as the default does, the peer counts only the messages that reach it. Then Age,
	// DropOldest and ResetKeepNumbers cannot be used: without an Encode they are an error. After a refused or
	// damaged message the peer's count stays one behind, so that the last message stays unacknowledged, until a
	// session begins with an unacknowledged message, which the peer then gets twice.
	Encode func(e Entry) (conn.Message, error)

	// Ack reports whether m is an acknowledgement, which does not reach the reader of the Conn, and up to which
	// number the peer acknowledges every message. Ack is called with each received message, in the goroutine
	// that reads: it must be quick, and must not keep the data. A number that was never sent closes the
	// session, as by [reconnect.Conn.Redial]. Default: the reader calls AckedTo or Acked.
	Ack func(m reconnect.Message) (seq uint64, ok bool)

	// Messages is the maximum number of unacknowledged messages. Default: 1024. Negative: an error.
	Messages int

	// Bytes is the maximum total data of the unacknowledged messages. Default: 16 MiB. Negative: an error.
	Bytes int

	// Age is how long a message may be unacknowledged, by the wall clock, including the time between two runs.
	// An older message is dropped, with [OutcomeExpired], even if it was written. If the clock is set back, the
	// age of the messages restarts with the next Add. Zero and negative mean no limit.
	Age time.Duration

	// DropOldest makes space for a message by dropping the oldest, with [OutcomeDropped]. If the dropped
	// messages were not sent yet, the peer sees a gap in the numbers. Default: Add fails with ErrFull, and
	// AddWait waits.
	DropOldest bool

	// OnReset is the policy when the peer has forgotten us: see [Ledger.Resume]. Default: ResetRenumber.
	OnReset Reset

	// OnDone is called exactly once for each message, with its outcome and no lock held. It may call Add, and
	// must wait neither for the Ledger nor for the end of the Conn. Calls may be concurrent, in goroutines of the
	// Ledger, the Conn, and the callers of reconnect.New and of the Ledger's methods. OutcomeDamaged is reported
	// before reconnect.New returns, and OutcomeLeft before the Conn is done.
	//
	// A slow OnDone delays writing and storing. A call in a method of the Ledger may outlast the Conn.
	OnDone func(r Settled)

	// OnStoreError is called with each error of Store.Apply, under the same rules as OnDone. A settled message
	// that could not be deleted is deleted with the next change; if the program ends before, it is sent again
	// in the next run.
	OnStoreError func(err error)

	// Store keeps the messages for the next run. Default: messages are in memory only.
	Store Store
}

// Reset is the policy for the unacknowledged messages when the peer has forgotten us.
type Reset uint8

// The policies.
const (
	// ResetRenumber sends each message under a new Seq, at least once: the peer may have got some before, under
	// their old numbers.
	ResetRenumber Reset = iota

	// ResetReport settles each message with Sent set as [OutcomeForgotten], without sending it again. The
	// others are sent under a new Seq. Messages that were loaded from a Store count as sent, unless ResumeEpoch
	// shows that no session was ever ready.
	ResetReport

	// ResetKeepNumbers sends all unacknowledged messages again under their old Seq, and new messages after
	// them, at least once. It is for a protocol in which a number stands for one message forever, such as a
	// chat. A peer that has less than it has acknowledged before is then no error; the messages between are
	// gone. A peer that has more than was ever sent is an error, unless it has an epoch and no session was ever
	// ready: then the Store was lost, and numbers begin after the peer's.
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
