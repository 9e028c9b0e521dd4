package reconnect

import (
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// lifetime is what all parts of one Conn share: the options, whether it is to end, and the
// counts. It is a context that ends when the Conn is to end.
type lifetime struct {
	link.Life
	o       settings
	watch   watch.Shared
	failure atomic.Pointer[error] // a callback has ended a supervisor's goroutine
	hooks   hooks
	counts  counts
}

// lifeKey is the key of the life in the context of a callback.
type lifeKey struct{}

// Value returns the life for its key.
func (l *lifetime) Value(key any) any {
	if key == (lifeKey{}) {
		return &l.Life
	}
	return nil
}

// fail ends the Conn because of err.
func (l *lifetime) fail(err error) {
	l.failure.CompareAndSwap(nil, &err)
	l.End()
}

// trace returns the hooks as they are now.
func (l *lifetime) trace() *Trace { return l.hooks.Load() }

// Stats are counts since [New], and how much waits now.
type Stats struct {
	Dials         uint64 // dials that have begun
	Failures      uint64 // dials, and sessions, that have ended before a session was ready
	Sessions      uint64 // connections that were dialed
	Lost          uint64 // sessions that have ended after they were ready or had delivered something
	Received      uint64 // messages that were received
	ReceivedBytes uint64 // bytes of their data
	Written       uint64 // messages that were written
	WrittenBytes  uint64 // bytes of their data
	Dropped       uint64 // messages whose fate is FateDropped, those included that Write or Send refused
	Unknown       uint64 // messages whose fate is FateUnknown
	Probes        uint64 // probes of a silent peer

	KeepAliveMessages uint64 // messages of KeepAlive that were written; Written counts them too
	Rotations         uint64 // sessions that were replaced: see Rotation
	RotationsFailed   uint64 // sessions that were to be replaced, and were not, such as because they were lost first

	Queued      uint64 // messages of Write and Send that have no fate yet
	QueuedBytes uint64 // bytes of the data that Send has queued
	Unread      uint64 // messages in the inbox
	UnreadBytes uint64 // bytes of their data

	// QueuedAge is how long ago the oldest message that waits to be written was given to Write or Send.
	// A message that is being written does not count.
	QueuedAge time.Duration

	// Silence is how long ago the ready session received its last byte, or its last message if the
	// connection is no [conn.Transport]. It is 0 without a ready session, and for a connection that can
	// neither be asked nor probed.
	Silence time.Duration
}

// Stats returns the counts. Each is exact, but they are not taken at one instant.
func (c *Conn) Stats() Stats {
	n, shared := &c.life.counts, &c.life.Counts
	s := Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: shared.Sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Messages.Load(), ReceivedBytes: n.in.Bytes.Load(),
		Written: shared.Written.Load(), WrittenBytes: shared.WrittenBytes.Load(), Probes: shared.Probes.Load(),
		Dropped: shared.Dropped.Load(), Unknown: shared.Unknown.Load(), KeepAliveMessages: shared.KeepAliveMessages.Load(),
	}
	s.Rotations, s.RotationsFailed = uint64(n.rotations.Load()), uint64(n.rotationsFailed.Load())
	s.Queued, s.QueuedBytes, s.QueuedAge = c.sender.outbox().Depth()
	s.Unread, s.UnreadBytes = c.receiver.inbox.Depth()
	if l := c.state.link.Load(); l != nil && c.State() == StateReady {
		s.Silence = l.liveness.Silence()
	}
	return s
}

// counts are those that no link needs.
type counts struct {
	dials, failures, lost      atomic.Uint64
	rotations, rotationsFailed atomic.Uint32
	in                         inbox.Counts // written by the goroutine that reads the connection
}
