package conntest

import (
	"slices"
	"time"
)

// Fault is what goes wrong with a dial. The zero value is no fault. If several fields are
// set, they apply in their order.
type Fault struct {
	Hang            bool          // the dial is never answered: it ends with its context only
	Delay           time.Duration // the dial is answered, or fails as below, only after this time
	IgnoresContext  bool          // with Delay: the dial goes on when its context ends, and answers after Delay all the same
	CompletesAnyway bool          // with Delay: a dial that was given up reaches the server after Delay all the same; the server finds it closed
	Err             error         // the dial fails with it, wrapped in a *net.OpError: a *net.DNSError, syscall.EHOSTUNREACH
	Refuse          bool          // the dial fails with syscall.ECONNREFUSED although there is a listener
	Drop            bool          // the dial succeeds and the connection is closed at once; no listener is needed, and none gets it

	// AcceptDelay is how much later than the dialer the listener gets the connection.
	// Bytes written meanwhile are kept.
	AcceptDelay time.Duration

	// OnConn receives the connection before either side has it, so that it can arm
	// faults from the first byte on. It must not wait.
	OnConn func(p *Pipe)
}

// Fault sets the faults of the next dials of addr: each dial takes one fault in turn, and all
// further dials take the last. A dial with the zero Fault is good, and so are all dials if
// there are no faults. Fault replaces all earlier faults of addr, but a dial under way keeps
// its fault. The addr "" stands for every address without faults.
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

// ResetAll resets every live connection to addr; "" is every address.
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
