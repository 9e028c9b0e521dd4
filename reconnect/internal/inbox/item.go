package inbox

import (
	"sync/atomic"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Item is a message, and the session that it came by. It has the fields of reconnect.Message.
type Item struct {
	conn.Message
	Session uint64
}

// Seam has the fields of reconnect.Seam, whose doc says what they mean.
type Seam struct {
	Session    uint64
	Cause      error
	Dropped    int
	Lost       int
	Planned    bool
	Overlapped bool
	Resumed    bool
	Reason     backoff.Reason
	Refetch    bool
}

// Marks reports whether s is nothing but the mark of a session.
func (s *Seam) Marks() bool { return s.Refetch && s.Lost == 0 && s.Dropped == 0 }

// Options are the limits of an Inbox.
type Options struct {
	Messages int
	Bytes    int // of their data
	Overflow Overflow
}

// Overflow says what becomes of a message for which there is no room.
type Overflow uint8

// The policies.
const (
	Block      Overflow = iota // it is put although there is no room: the caller has waited
	DropOldest                 // it is put, and the oldest messages are dropped
	Disconnect                 // Put returns ErrFull
)

// Counts are how much was received.
type Counts struct{ Messages, Bytes atomic.Uint64 }

// Received counts a message.
func (n *Counts) Received(m conn.Message) {
	n.Messages.Add(1)
	n.Bytes.Add(uint64(len(m.Data)))
}

// ErrFull is the error of Put with Disconnect, and the cause of a seam for dropped messages.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string { return "inbox full" }

// Reason returns the reason for [backoff.ReasonOf].
func (fullError) Reason() backoff.Reason { return backoff.ReasonSlowReader }
