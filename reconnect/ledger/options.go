package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Options are the options of [New]. A nil *Options is fine.
type Options struct {
	// Encode returns the message in which an entry goes to the peer. It is called before each
	// write of it, in one goroutine at a time, and no lock is held. The message is written before
	// the next call, so Encode may use the same memory again. An error means that the entry can
	// never be sent: see [OutcomeRefused]. Default: a Binary message with the data alone, for a
	// protocol in which both ends count.
	//
	// The peer cannot count what does not reach it. So Age, DropOldest and ResetKeepNumbers are an
	// error without an Encode, and the connection should be one that refuses no Binary message. If a
	// message is refused or damaged all the same, the peer's count stays one behind until a session
	// begins with an unacknowledged message, which the peer gets twice. Until then the last message
	// that is written stays unacknowledged, and WaitAll waits for it. An Encode that leaves Seq out
	// has the same limits, and New cannot see that.
	Encode func(e Entry) (conn.Message, error)

	// Ack reads one received message. It returns the number up to which the peer acknowledges
	// everything, and reports whether m is such a message, which does not reach the reader of the
	// Conn then. It is called with each message, in the goroutine that reads, so it must be quick,
	// and must not keep the data. A number that was never sent ends the session, as by
	// [reconnect.Conn.Redial]. Default: the reader calls AckedTo or Acked.
	Ack func(m reconnect.Message) (seq uint64, ok bool)

	// Messages is how many messages may be unacknowledged. Default: 1024. Negative: an error.
	Messages int

	// Bytes is how much data they may have together. A message that is larger is refused.
	// Default: 16 MiB. Negative: an error.
	Bytes int

	// Age is how long a message may be unacknowledged, by the wall clock, the time between two
	// runs of the program included. Then it is dropped, with [OutcomeExpired], whether it was
	// written or not: the peer may have one that was, and its acknowledgement comes too late. If
	// the clock is set back, the age of the messages begins anew with the next Add. Default, and
	// negative: for ever.
	Age time.Duration

	// DropOldest makes room for a message by dropping the oldest, with [OutcomeDropped]. The peer
	// sees a gap in the numbers if they were not sent yet. Default: Add fails with ErrFull, and
	// AddWait waits.
	DropOldest bool

	// OnReset says what happens to the messages that are unacknowledged when the peer has
	// forgotten us: see [Ledger.Resume]. Default: ResetRenumber.
	OnReset Reset

	// OnDone is called with what became of each message, exactly once. No lock is held. It may
	// call Add, and must wait neither for the Ledger nor for the end of the Conn. Several calls
	// may run at once, because each runs in the goroutine that has caused the outcome:
	//
	//   - OutcomeAcknowledged: the caller of AckedTo, Acked, Resume or ResumeEpoch.
	//   - OutcomeExpired: a goroutine of the timer, or the one that writes.
	//   - OutcomeDropped: the caller of Add or AddWait; with a Store, the goroutine that stores.
	//   - OutcomeForgotten: the one that says that the session is ready; with a Store, the one
	//     that stores.
	//   - OutcomeRefused: the one that writes.
	//   - OutcomeDamaged: the caller of reconnect.New, while that runs.
	//   - OutcomeLeft: the one in which the Conn ends, before it is done.
	//
	// The goroutines that write and store wait for it, so a slow OnDone holds them up. It may get
	// the outcomes of others, too, that came at the same time. A call in a goroutine of the
	// program, such as that of AckedTo, may last longer than the Conn. Default: none.
	OnDone func(r Settled)

	// OnStoreError is called with each error of Store.Apply. No lock is held, and it may do what
	// OnDone may. An Add whose message could not be stored returns the error as well. A message
	// that was settled, but could not be deleted, is deleted with the next change; if the program
	// ends before that, it is sent again in the next run. Default: none.
	OnStoreError func(err error)

	// Store keeps the messages over the end of the program. Default: none, so that they are kept
	// in memory only.
	Store Store
}

// Reset says what happens to the messages that are unacknowledged when the peer has forgotten us.
type Reset uint8

// The policies for a peer that has forgotten.
const (
	// ResetRenumber gives each a new Seq, and sends it. The peer may get some twice, under two numbers,
	// because nobody knows what it has done with them: at least once.
	ResetRenumber Reset = iota

	// ResetReport ends each that has Sent set, with [OutcomeForgotten], and does not send it again.
	// The others get a new Seq, and are sent. After a restart of the program
	// each that was loaded has it set, unless the Store shows that no session was ever ready: see
	// [Ledger.ResumeEpoch].
	ResetReport

	// ResetKeepNumbers is for a protocol in which the numbers are the sender's for ever, such as a chat
	// whose server may be replaced by one that knows less. All that are unacknowledged are sent
	// again under their old Seq, and new ones go on after them: at least once. That the peer has
	// less than it has acknowledged before is no error then; what it has lost of that is gone. That
	// it has more than was ever sent is an error, unless the peer has an epoch and no session was
	// ever ready before, so that the Store was lost: then numbers begin after what the peer has.
	ResetKeepNumbers
)

const (
	defaultMessages = 1024
	defaultBytes    = 16 << 20
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
		return c, fmt.Errorf("ledger: Options.OnReset: %d is none of the policies", c.OnReset)
	case c.Encode == nil && (c.Age > 0 || c.DropOldest || c.OnReset == ResetKeepNumbers):
		return c, errors.New("ledger: Options.Encode: Age, DropOldest and ResetKeepNumbers need one that sends the number of each message")
	case c.OnStoreError != nil && c.Store == nil:
		return c, fmt.Errorf("ledger: Options.OnStoreError without a Store is never called")
	}
	if c.Encode == nil {
		c.Encode = func(e Entry) (conn.Message, error) { return conn.BinaryMessage(e.Data), nil }
	}
	if c.Messages == 0 {
		c.Messages = defaultMessages
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	c.Age = max(c.Age, 0)
	return c, nil
}
