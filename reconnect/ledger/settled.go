package ledger

import (
	"errors"
	"fmt"
	"net"
)

// Entry is a message in a [Ledger].
type Entry struct {
	Record
	Sent  bool // a write of the message has begun, or waits for its turn, or may have begun in an earlier run; so the peer may have the message
	Again bool // Sent is true for the present Seq, so the next write repeats one
}

// Settled is a message of a [Ledger] with its outcome.
type Settled struct {
	Entry           // with OutcomeDamaged only the ID (0: unknown) and the rest of the Data
	Outcome Outcome // never changes
	Err     error   // the reason; nil for OutcomeAcknowledged
}

// Outcome is the end of a message of a [Ledger]. Each message has exactly one.
type Outcome uint8

// The outcomes. Where Settled.Sent is true the peer may have the message, whatever the outcome.
const (
	OutcomeAcknowledged Outcome = iota // the peer has acknowledged the message
	OutcomeExpired                     // the message was older than Options.Age
	OutcomeDropped                     // the message made room for others: see Options.DropOldest
	OutcomeForgotten                   // the peer has forgotten whether it got the message: see ResetReport
	OutcomeRefused                     // Encode or the connection has refused the message
	OutcomeDamaged                     // the record in the Store cannot be read; the Ledger does not delete it, so each run reports it again
	OutcomeLeft                        // the Conn has ended; if there is a Store, the next Ledger with this Store sends the message
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
	ErrFull      = errors.New("ledger: no room for another message")                     // there was no room for the message
	ErrTooLarge  = errors.New("ledger: message is larger than Options.Bytes")            // so it will never have room
	ErrExpired   = errors.New("ledger: message was not acknowledged within Options.Age") // see Options.Age
	errForgotten = errors.New("ledger: the peer has forgotten which messages it got")    // see ResetReport
	ErrUnknown   = errors.New("ledger: the outcome of this message is not known")        // see Ledger.Wait

	// ErrInCallback says that Wait, WaitAll or AddWait was called with the context of OnSession,
	// Layer.Open, OnMessage or OnSeam, or with a context derived from it. The Conn receives no
	// acknowledgement while one of these callbacks runs.
	ErrInCallback = errors.New("ledger: cannot wait in a callback of the Conn, " +
		"because no acknowledgement is received while it runs: " +
		"call Add, and wait in another goroutine with another context")

	errNoEpoch     = errors.New("ledger: ResumeEpoch: the epoch is empty")
	errLongEpoch   = fmt.Errorf("ledger: ResumeEpoch: the epoch has more than %d bytes", maxEpoch)
	errNotReturned = errors.New("ledger: the function called runtime.Goexit and did not return")
	errUsed        = errors.New("ledger: a Ledger serves one Conn, and this one has served a Conn already: make a new Ledger") // see Ledger.Layer
)

// SeqError reports that the peer's numbers do not agree with ours.
type SeqError struct {
	Seq   uint64 // the peer acknowledges every message up to Seq
	Acked uint64 // the peer has acknowledged every message up to Acked before
	Sent  uint64 // the last number whose write has begun
}

func (e *SeqError) Error() string {
	if e.Seq > e.Sent {
		return fmt.Sprintf("ledger: peer acknowledges number %d, but the last number sent is %d", e.Seq, e.Sent)
	}
	return fmt.Sprintf("ledger: peer has numbers up to %d, but has acknowledged numbers up to %d before", e.Seq, e.Acked)
}

// left returns the error of a message that is left when the Conn has ended because of err.
func left(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", net.ErrClosed, err)
}
