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
	Probes        uint64 // of silent peers
}

// Stats returns the counts. Each is right, though not all at the same instant.
func (c *Conn) Stats() Stats {
	n := &c.counts
	return Stats{
		Dials: n.dials.Load(), Failures: n.failures.Load(), Sessions: n.sessions.Load(), Lost: n.lost.Load(),
		Received: n.in.Load(), ReceivedBytes: n.inBytes.Load(),
		Written: n.out.Load(), WrittenBytes: n.outBytes.Load(), Probes: n.probes.Load(),
	}
}

type counts struct {
	dials, failures, sessions, lost, probes atomic.Uint64
	in, inBytes                             atomic.Uint64 // written by whoever reads the connection
	out, outBytes                           atomic.Uint64 // written by whoever has the write slot
}

func (n *counts) received(m conn.Message) {
	n.in.Add(1)
	n.inBytes.Add(uint64(len(m.Data)))
}

func (n *counts) written(m conn.Message) {
	n.out.Add(1)
	n.outBytes.Add(uint64(len(m.Data)))
}
