package conntest

import (
	"slices"
	"time"
)

// Fault is a fault of a dial; the zero value is none. If several fields are set, they apply in
// their order.
type Fault struct {
	Hang            bool          // the dial blocks until its context is done
	Delay           time.Duration // the dial succeeds, or fails as below, only after this time
	IgnoresContext  bool          // with Delay: the dial ignores its context, and completes after Delay
	CompletesAnyway bool          // with Delay: a canceled dial reaches the server after Delay, closed
	Err             error         // the dial fails with it, such as syscall.ECONNREFUSED, wrapped in a *net.OpError
	Drop            bool          // the dial succeeds, then the connection is closed; no listener is needed or gets it

	// AcceptDelay is how much later than the dialer the listener gets the connection. Bytes written
	// meanwhile are kept.
	AcceptDelay time.Duration

	// OnConn receives the connection before either side has it. It must not wait.
	OnConn func(p *Pipe)
}

// Fault sets the faults of the next dials of addr: each takes one in turn, and all further ones
// take the last. Without faults, dials are left alone. Fault replaces all earlier faults of addr,
// except for dials in progress. The empty addr means every address without faults.
func (n *Network) Fault(addr string, faults ...Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(faults) == 0 {
		delete(n.faults, addr)
		return
	}
	if n.faults == nil {
		n.faults = make(map[string][]Fault)
	}
	n.faults[addr] = slices.Clone(faults)
}

// ResetAll resets every live connection to addr.
func (n *Network) ResetAll(addr string) {
	for _, p := range n.Conns(addr) {
		p.Reset()
	}
}

// nextFault returns the fault of one dial, and removes it unless it is the last. The caller
// holds mu.
func (n *Network) nextFault(addr string) Fault {
	if _, ok := n.faults[addr]; !ok {
		addr = ""
	}
	script := n.faults[addr]
	if len(script) == 0 {
		return Fault{}
	}
	if len(script) > 1 {
		n.faults[addr] = script[1:]
	}
	return script[0]
}
