package conntest

import (
	"cmp"
	"slices"
	"time"
)

// Count counts dials and connections.
type Count struct {
	Dialing    int // attempts in progress
	MaxDialing int // maximum of Dialing
	Open       int // connections whose dialer has not closed them
	MaxOpen    int // maximum of Open
	MaxHeld    int // maximum of Dialing and Open together
}

// counts is what a network knows of one address. The network's lock guards it.
type counts struct {
	Count
	dials []time.Time
	pipes map[*Pipe]struct{} // those with an end that is not closed
}

// Dials returns the start time of each dial of addr, in order.
func (n *Network) Dials(addr string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.known(addr).dials)
}

// Count returns the counts of addr.
func (n *Network) Count(addr string) Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known(addr).Count
}

// known returns the counts of addr, of every address together for "". The caller holds mu.
func (n *Network) known(addr string) *counts {
	if addr == "" {
		return &n.total
	}
	return cmp.Or(n.counts[addr], new(counts))
}

// Conns returns the live connections to addr, oldest first.
func (n *Network) Conns(addr string) []*Pipe {
	return slices.DeleteFunc(n.held(addr), func(p *Pipe) bool { return !p.Live() })
}

// Unclosed returns the connections of which an end was not closed by its owner.
func (n *Network) Unclosed() []*Pipe { return n.held("") }

// held returns the connections to addr that have an open end, the oldest first; "" is
// every address.
func (n *Network) held(addr string) []*Pipe {
	n.mu.Lock()
	var held []*Pipe
	for a, b := range n.counts {
		if addr == "" || addr == a {
			for p := range b.pipes {
				held = append(held, p)
			}
		}
	}
	n.mu.Unlock()
	slices.SortFunc(held, func(a, b *Pipe) int { return cmp.Compare(a.id, b.id) })
	return held
}

// Peak returns the largest number of times within any window, its end excluded. The times must be
// in order.
func Peak(times []time.Time, window time.Duration) int {
	peak, first := 0, 0
	for i, t := range times {
		for t.Sub(times[first]) >= window && first < i {
			first++
		}
		peak = max(peak, i-first+1)
	}
	return peak
}

// beginDial notes a dial and returns its fault.
func (n *Network) beginDial(addr string) Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	b := n.countsOf(addr)
	b.dials = append(b.dials, now)
	n.total.dials = append(n.total.dials, now)
	n.count(addr, func(c *Count) { c.Dialing++ })
	return n.nextFault(addr)
}

// endDial notes the end of a dial; p is nil if it failed.
func (n *Network) endDial(addr string, p *Pipe) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(addr, func(c *Count) {
		c.Dialing--
		if p != nil {
			c.Open++
		}
	})
}

// closed notes that an owner has closed an end of p. counted is set if the network counted
// it as open, last if both ends are closed now.
func (n *Network) closed(p *Pipe, counted, last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if counted {
		n.count(p.addr, func(c *Count) { c.Open-- })
	}
	if last {
		delete(n.countsOf(p.addr).pipes, p)
	}
}

// countsOf returns the counts of addr. The caller holds mu.
func (n *Network) countsOf(addr string) *counts {
	b := n.counts[addr]
	if b == nil {
		b = &counts{pipes: make(map[*Pipe]struct{})}
		if n.counts == nil {
			n.counts = make(map[string]*counts)
		}
		n.counts[addr] = b
	}
	return b
}

// count changes the counts of addr and of the whole network. The caller holds mu.
func (n *Network) count(addr string, change func(c *Count)) {
	for _, c := range []*Count{&n.countsOf(addr).Count, &n.total.Count} {
		change(c)
		c.MaxDialing = max(c.MaxDialing, c.Dialing)
		c.MaxOpen = max(c.MaxOpen, c.Open)
		c.MaxHeld = max(c.MaxHeld, c.Dialing+c.Open)
	}
}
