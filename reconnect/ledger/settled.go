package ledger

import (
	"errors"
	"fmt"
	"net"
)

// Entry is a message in a [Ledger].
type Entry struct {
	Record
	Sent  bool // a write has begun, waits for its turn, or may have begun in an earlier run; the peer may have it
	Again bool // Sent is true for the current Seq, so the next write is a repetition
}

// Settled is a message of a [Ledger] with its outcome.
type Settled struct {
	Entry           // with OutcomeDamaged only the ID (0: unknown) and the rest of the Data
	Outcome Outcome // never changes
	Err     error   // reason, or nil for OutcomeAcknowledged
}

// Outcome is the final state of a message.
type Outcome uint8

// The outcomes.
const (
	OutcomeAcknowledged Outcome = iota // acknowledged by the peer
	OutcomeExpired                     // older than Options.Age
	OutcomeDropped                     // dropped to make space
	OutcomeForgotten                   // the peer has forgotten whether it got the message: see ResetReport
	OutcomeRefused                     // rejected by Encode or the connection
	OutcomeDamaged                     // unreadable record: see Store.Load
	OutcomeLeft                        // the Conn is done; the next Ledger with this Store, if any, sends it
)

var outcomes = [...]string{"acknowledged", "expired", "dropped", "forgotten by the peer", "refused", "damaged", "left"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// OutcomeError reports that a message was not acknowledged.
type OutcomeError struct {
	Settled // Data is nil
}

func (e *OutcomeError) Error() string {
	return fmt.Sprintf("ledger: message %d %v: %v", e.ID, e.Outcome, e.Err)
}

// Unwrap returns Err.
func (e *OutcomeError) Unwrap() error { return e.Err }

// These are the errors of a Ledger. Once its Conn is done the error is [net.ErrClosed].
var (
	ErrFull      = errors.New("ledger: no room for another message")
	ErrTooLarge  = errors.New("ledger: message is larger than Options.Bytes")
	ErrExpired   = errors.New("ledger: message was not acknowledged within Options.Age")
	errForgotten = errors.New("ledger: the peer has forgotten which messages it got") // see ResetReport
	ErrUnknown   = errors.New("ledger: the outcome of this message is not known")     // see Ledger.Wait

	// ErrInCallback means that Wait, WaitAll or AddWait was called with the context of OnSession, Layer.Open,
	// OnMessage or OnSeam, or one derived from it, even if there was nothing to wait for.
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
	seq   uint64 // the peer acknowledges every message up to seq
	acked uint64 // every message up to acked was acknowledged before
	sent  uint64 // last number whose write has begun
}

func (e *SeqError) Error() string {
	if e.seq > e.sent {
		return fmt.Sprintf("ledger: peer acknowledges number %d, but the last number sent is %d", e.seq, e.sent)
	}
	return fmt.Sprintf("ledger: peer has numbers up to %d, but has acknowledged numbers up to %d before",
		e.seq, e.acked)
}

// left returns the error of a message that is left when the Conn has ended because of err.
func left(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", net.ErrClosed, err)
}
