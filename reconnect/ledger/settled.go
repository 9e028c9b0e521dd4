package ledger

import (
	"errors"
	"fmt"
	"net"
)

// Entry is a message in a [Ledger].
type Entry struct {
	Record
	Sent  bool // a write of it has begun or waits for its turn, or may have begun in an earlier run; so the peer may have it
	Again bool // so it is, under the present Seq: the next write of it repeats one
}

// Settled says what became of a message of a [Ledger].
type Settled struct {
	Entry           // the message; of OutcomeDamaged only ID (0: it is not known), and what is left of Data
	Outcome Outcome // what became of it
	Err     error   // why; nil for OutcomeAcknowledged
}

// Outcome is what became of a message of a [Ledger]. Each message has exactly one.
type Outcome uint8

// The outcomes. Where Settled.Sent is true the peer may have the message, whatever the outcome.
const (
	OutcomeAcknowledged Outcome = iota // the peer has it, as it has said
	OutcomeExpired                     // it was older than Options.Age
	OutcomeDropped                     // it made room for others: see Options.DropOldest
	OutcomeForgotten                   // the peer has forgotten whether it got it: see ResetReport
	OutcomeRefused                     // it cannot be sent: Encode, or the connection, has refused it
	OutcomeDamaged                     // its record in the Store cannot be read; the Ledger does not delete it, so each run reports it again
	OutcomeLeft                        // the Conn has ended; the message is still in the Store, if there is one, and a Ledger that gets this Store sends it
)

var outcomes = [...]string{"acknowledged", "expired", "dropped", "forgotten by the peer", "refused", "damaged", "left"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// OutcomeError reports that a message was not acknowledged. It unwraps to Err.
type OutcomeError struct {
	Settled // Data is nil
}

func (e *OutcomeError) Error() string {
	return fmt.Sprintf("ledger: message %d %v: %v", e.ID, e.Outcome, e.Err)
}

// Unwrap returns Err.
func (e *OutcomeError) Unwrap() error { return e.Err }

// These are the errors of a Ledger. After the end of its Conn the error is [net.ErrClosed].
var (
	ErrFull      = errors.New("ledger: ledger is full")                          // there was no room for the message
	ErrTooLarge  = errors.New("ledger: message is larger than Options.Bytes")    // so it will never have room
	ErrExpired   = errors.New("ledger: message was not acknowledged in time")    // see Options.Age
	errForgotten = errors.New("ledger: peer has forgotten what it got")          // see ResetReport
	ErrUnknown   = errors.New("ledger: what became of the message is not known") // see Ledger.Wait

	errNoEpoch     = errors.New("ledger: ResumeEpoch without an epoch")
	errLongEpoch   = fmt.Errorf("ledger: the epoch has more than %d bytes", maxEpoch)
	errNotReturned = errors.New("ledger: the function did not return, because it ended its goroutine")
	errUsed        = errors.New("ledger: a Ledger serves one Conn, and this one has had one") // see Ledger.Layer
)

// SeqError reports that the peer's numbers and ours do not agree.
type SeqError struct {
	Seq   uint64 // what the peer has confirmed
	Acked uint64 // up to here it has confirmed everything before
	Sent  uint64 // the last number of which a write has begun
}

func (e *SeqError) Error() string {
	if e.Seq > e.Sent {
		return fmt.Sprintf("ledger: peer confirms number %d, and the last that was sent is %d", e.Seq, e.Sent)
	}
	return fmt.Sprintf("ledger: peer has numbers up to %d, and has acknowledged up to %d before", e.Seq, e.Acked)
}

// left returns the error of a message that is left when the Conn has ended because of err.
func left(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", net.ErrClosed, err)
}
