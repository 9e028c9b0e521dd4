package reconnect

import (
	"sync/atomic"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// lifetime is what all parts of one Conn share: what the user asked for, whether it
// is to end, and the counts. It is a context that ends when the Conn is to end.
type lifetime struct {
	xsync.Context
	o       Options     // complete
	closed  atomic.Bool // Close was called: nothing more is read
	leaving atomic.Bool // Shutdown was called: nothing more is accepted to be sent
	calling callback    // what the supervisor's goroutine is in
	counts  counts
}

// trace returns the hooks.
func (l *lifetime) trace() *Trace { return l.o.Run.Trace }

// waitFor waits for done, and reports a function that takes long to end.
func (l *lifetime) waitFor(done <-chan struct{}, function string) {
	l.trace().waitFor(done, l.o.Name, func() string { return function })
}

// callback is the function of the user's that runs in the supervisor's goroutine,
// apart from OnMessage, which a link knows of.
type callback struct{ name atomic.Pointer[string] }

// The names of these functions. Elsewhere means that the supervisor waits for one in
// another goroutine.
var onSeam, keep, elsewhere = "OnSeam", "Keep", ""

func (c *callback) enter(name *string) { c.name.Store(name) }
func (c *callback) leave()             { c.name.Store(nil) }

// Stats are counts since [New], and what waits now.
type Stats struct {
	Dials         uint64 // tries begun
	Failures      uint64 // tries that brought no ready session
	Sessions      uint64 // connections that were dialed
	Lost          uint64 // sessions that ended after they were ready, or had delivered something
	Received      uint64 // messages
	ReceivedBytes uint64 // of their data
	Written       uint64 // messages
	WrittenBytes  uint64 // of their data
	Dropped       uint64 // messages given to Write or Send, those included that it refused
	Unknown       uint64 // messages whose fate is unknown
	Probes        uint64 // of silent peers

	Queued      uint64 // messages that have no fate yet, now
	QueuedBytes uint64 // of the data of those that Send has queued, now
	Unread      uint64 // messages in the inbox, now
	UnreadBytes uint64 // of their data, now
}

// Stats returns the counts. Each is right, though not all at the same instant.
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
	in, inBytes                             atomic.Uint64 // written by whoever reads the connection
	out, outBytes                           atomic.Uint64 // written by whoever has the write slot
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
