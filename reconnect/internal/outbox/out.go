package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// Out has the fields of reconnect.Outgoing.
type Outgoing struct {
	conn.Message
	Deadline   time.Time
	Key        string
	Session    uint64
	Repeatable bool
	Tag        any
}

// Receipt has the fields of reconnect.Receipt.
type Receipt struct {
	Out     Outgoing
	Fate    Fate
	Session uint64
	Tries   int
	Began   time.Time
	Ended   time.Time
	Err     error
}

// Fate is what became of a message. Its values are those of reconnect.Fate.
type Fate uint8

// The fates.
const (
	FateWritten Fate = iota
	FateDropped
	FateUnknown
)

// Count counts a message with that fate, unless it was written.
func (f Fate) Count(n *link.Counts) {
	switch f {
	case FateDropped:
		n.Dropped.Add(1)
	case FateUnknown:
		n.Unknown.Add(1)
	}
}

// These are the reasons why a message was dropped.
var (
	ErrFull        = errors.New("outbox is full")
	ErrReplaced    = errors.New("replaced by a newer message with the same key")
	ErrExpired     = errors.New("too late to be sent")
	ErrSessionLost = errors.New("its session was lost")
)

// SessionLost returns the error of a message for a session that has ended, or that has never
// been.
func SessionLost(session uint64) error {
	return fmt.Errorf("session %d: %w", session, ErrSessionLost)
}

// Waiting is a message of Write that is queued.
type Waiting struct{ e *entry }

// Done returns a channel that is closed when the message has its fate.
func (w Waiting) Done() <-chan struct{} { return w.e.Value.done }

// FailFast reports whether the message does not wait for another session.
func (w Waiting) FailFast() bool { return w.e.Value.failFast }

// Outcome returns the fate of the message, the session that tried to write it, 0 if none did, and why
// it was not written. Call it after Done, or after Withdraw.
func (w Waiting) Outcome() (f Fate, session uint64, err error) {
	return w.e.Value.fate, w.e.Value.session, w.e.Value.err
}
