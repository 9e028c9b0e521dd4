package reconnect

import (
	"sync/atomic"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// lifetime is what all parts of one Conn share: the options, whether it is to end, and the
// counts. It is a context that ends when the Conn is to end.
type lifetime struct {
	xsync.Context
	o       Options     // with their defaults
	closed  atomic.Bool // Close was called: nothing more is read
	leaving atomic.Bool // Shutdown was called: nothing more is accepted to be sent
	calling callback    // the user's function that runs in the supervisor's goroutine
	counts  counts
}

// trace returns the hooks.
func (l *lifetime) trace() *Trace { return l.o.Run.Trace }

// waitFor waits for done, and reports that function is overdue if that takes long.
func (l *lifetime) waitFor(done <-chan struct{}, function string) {
	l.trace().waitFor(done, l.o.Name, func() string { return function })
}

// callback is the name of the user's function that runs in the supervisor's goroutine. For
// OnMessage see link.turn.
type callback struct{ name atomic.Pointer[string] }

// These are the names of such functions. elsewhere means that the supervisor waits for one
// in another goroutine.
var onSeam, keep, elsewhere = "OnSeam", "Keep", ""

func (c *callback) enter(name *string) { c.name.Store(name) }
func (c *callback) leave()             { c.name.Store(nil) }

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

	Queued      uint64 // messages of Write and Send that have no fate yet
	QueuedBytes uint64 // bytes of the data that Send has queued
	Unread      uint64 // messages in the inbox
	UnreadBytes uint64 // bytes of their data
}

// Stats returns the counts. Each is exact, but they are not taken at one instant.
func (c *Conn) Stats() Stats {
	n := &c.life.counts
	s := Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: n.sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Load(), ReceivedBytes: n.inBytes.Load(),
		Written: n.out.Load(), WrittenBytes: n.outBytes.Load(), Probes: n.probes.Load(),
		Dropped: n.dropped.Load(), Unknown: n.unknown.Load(),
	}
	s.Queued, s.QueuedBytes = c.sender.outbox.depth()
	s.Unread, s.UnreadBytes = c.receiver.inbox.depth()
	return s
}

type counts struct {
	dials, failures, sessions, lost, probes atomic.Uint64
	in, inBytes                             atomic.Uint64 // written by the goroutine that reads the connection
	out, outBytes                           atomic.Uint64 // written by the goroutine that holds the write slot
	dropped, unknown                        atomic.Uint64
}

func (n *counts) received(m conn.Message) {
	n.in.Add(1)
	n.inBytes.Add(uint64(len(m.Data)))
}

func (n *counts) written(m conn.Message) {
	n.out.Add(1)
	n.outBytes.Add(uint64(len(m.Data)))
}

func (n *counts) settled(f Fate) {
	switch f {
	case FateDropped:
		n.dropped.Add(1)
	case FateUnknown:
		n.unknown.Add(1)
	}
}
