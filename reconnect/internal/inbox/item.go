package inbox

import (
	"slices"
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

// Overflow says what becomes of a message for which there is no room. Its values are those of
// reconnect.InboxOverflow.
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

// Held are messages of the next session, for which the reader has to wait until it has all of the
// old one.
type Held struct {
	list  []Item
	bytes int // of their data
}

// Add holds one message more, and reports whether that is as much as there is room for by the
// options of the inbox. A message without data counts as one of 64 bytes.
func (h *Held) Add(m Item, o Options) (full bool) {
	h.list = append(h.list, m)
	h.bytes += len(m.Data)
	return h.bytes >= o.Bytes || len(h.list) >= o.held()
}

// held returns how many messages may be held.
func (o *Options) held() int { return max(o.Messages, o.Bytes/64) }

// Forget drops the messages of one session, and reports whether there were any.
func (h *Held) Forget(session uint64) bool {
	before := len(h.list)
	h.list = slices.DeleteFunc(h.list, func(m Item) bool { return m.Session == session })
	h.bytes = 0
	for _, m := range h.list {
		h.bytes += len(m.Data)
	}
	return len(h.list) < before
}

// Take returns the messages, and holds none any more.
func (h *Held) Take() []Item {
	list := h.list
	*h = Held{}
	return list
}
