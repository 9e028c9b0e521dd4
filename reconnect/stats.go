package reconnect

import (
	"sync/atomic"

	"github.com/redial-go/redial/conn"
)

// Stats are counts since [New].
type Stats struct {
	Dials         uint64 // tries begun
	Failures      uint64 // tries that brought no ready session
	Sessions      uint64 // connections that were dialled
	Lost          uint64 // sessions that ended after they were ready, or had delivered something
	Received      uint64 // messages
	ReceivedBytes uint64 // of their data
	Written       uint64 // messages
	WrittenBytes  uint64 // of their data
	Dropped       uint64 // messages given to Write or Send, those included that it refused
	Unknown       uint64 // messages whose fate is unknown
	Queued        uint64 // messages that have no fate yet, now
	Probes        uint64 // of silent peers
}

// Stats returns the counts. Each is right, though not all at the same instant.
func (c *Conn) Stats() Stats {
	n := &c.counts
	var queued uint64
	if c.outbox != nil {
		queued = uint64(c.outbox.pending.Load())
	}
	return Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: n.sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Load(), ReceivedBytes: n.inBytes.Load(),
		Written: n.out.Load(), WrittenBytes: n.outBytes.Load(), Probes: n.probes.Load(),
		Dropped: n.dropped.Load(), Unknown: n.unknown.Load(), Queued: queued,
	}
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
	case Dropped:
		n.dropped.Add(1)
	case Unknown:
		n.unknown.Add(1)
	}
}
