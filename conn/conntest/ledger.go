package conntest

import (
	"cmp"
	"slices"
	"time"
)

// Count is what the ledger of a network says about one address, or about all.
// A connection is open until its dialler closes it, as a socket is, whatever
// the network or the server has done to it before.
type Count struct {
	Dials       int // attempts so far, good or not
	Dialling    int // attempts under way
	MaxDialling int // the most at one time
	Open        int // connections whose dialler has not closed them
	MaxOpen     int // the most at one time
	MaxHeld     int // the most of Dialling and Open together: 1 for an owner that has one connection at a time
}

// book is the ledger of one address. The network's lock guards it.
type book struct {
	Count
	dials []time.Time
	pipes map[*Pipe]struct{} // those with an end that is not closed
}

// Dials returns when each dial of addr began, in order; "" is every address.
func (n *Network) Dials(addr string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr == "" {
		return slices.Clone(n.total.dials)
	}
	if b := n.books[addr]; b != nil {
		return slices.Clone(b.dials)
	}
	return nil
}

// Count returns the ledger of addr; "" is every address together.
func (n *Network) Count(addr string) Count {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr == "" {
		return n.total.Count
	}
	if b := n.books[addr]; b != nil {
		return b.Count
	}
	return Count{}
}

// Open returns the number of connections whose dialler has not closed them.
func (n *Network) Open() int { return n.Count("").Open }

// Conns returns the live connections to addr, the oldest first; "" is every
// address. A connection is live until an end closes it or a fault ends it.
func (n *Network) Conns(addr string) []*Pipe {
	return slices.DeleteFunc(n.held(addr), func(p *Pipe) bool { return !p.Live() })
}

// Unclosed returns the connections of which some end was not closed by its
// owner, be they live or dead. A test that wants to see nothing left demands
// that it is empty.
func (n *Network) Unclosed() []*Pipe { return n.held("") }

// held returns the connections in the book of addr, the oldest first.
func (n *Network) held(addr string) []*Pipe {
	n.mu.Lock()
	var held []*Pipe
	for a, b := range n.books {
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

// Peak returns the most of times that fall into any one window of that length,
// its end excluded: the height of a herd. The times must be in order, as those
// of [Network.Dials] are.
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

// beginDial notes a dial and takes its fault.
func (n *Network) beginDial(addr string) Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	b := n.book(addr)
	b.dials = append(b.dials, now)
	n.total.dials = append(n.total.dials, now)
	n.count(addr, func(c *Count) { c.Dials++; c.Dialling++ })
	return n.nextFault(addr)
}

// endDial notes how a dial ended: with p, or with nothing.
func (n *Network) endDial(addr string, p *Pipe) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count(addr, func(c *Count) {
		c.Dialling--
		if p != nil {
			c.Open++
		}
	})
}

// closed notes that one end of p was closed by its owner: one that was counted
// as open, and the last one.
func (n *Network) closed(p *Pipe, counted, last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if counted {
		n.count(p.addr, func(c *Count) { c.Open-- })
	}
	if last {
		delete(n.book(p.addr).pipes, p)
	}
}

// book returns the ledger of addr. The lock is held.
func (n *Network) book(addr string) *book {
	b := n.books[addr]
	if b == nil {
		b = &book{pipes: make(map[*Pipe]struct{})}
		if n.books == nil {
			n.books = make(map[string]*book)
		}
		n.books[addr] = b
	}
	return b
}

// count changes the counts of addr and of the whole. The lock is held.
func (n *Network) count(addr string, change func(c *Count)) {
	for _, c := range []*Count{&n.book(addr).Count, &n.total.Count} {
		change(c)
		c.MaxDialling = max(c.MaxDialling, c.Dialling)
		c.MaxOpen = max(c.MaxOpen, c.Open)
		c.MaxHeld = max(c.MaxHeld, c.Dialling+c.Open)
	}
}
