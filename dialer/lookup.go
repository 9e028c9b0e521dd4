package dialer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// resolutionDelay is how long IPv4 addresses wait for IPv6 addresses (RFC 8305, section 3).
	resolutionDelay = 50 * time.Millisecond

	// lookupPatience is how long after its beginning a lookup may hold up a dial whose addresses of one
	// family have all failed. It bounds what a name server costs that never answers for the other family.
	lookupPatience = 2 * time.Second
)

// lookupLimit returns the limit on a lookup that is part of connecting. It leaves time to connect. Of 16 s it
// leaves enough to ask a third name server after two that do not answer, which takes 10 s.
func lookupLimit(connect time.Duration) time.Duration { return connect / 4 * 3 }

// lookup looks up the addresses of a host. It asks for both families at the same time, so that a name
// server that answers for only one of them is enough.
type lookup struct {
	answers  chan found // one for each family; buffered
	left     int        // answers to come
	patience *time.Timer
	rand     *rand.Rand // shuffles the addresses
	end      func()     // ends the lookup of each family
	running  sync.WaitGroup
}

// found is the answer for one family.
type found struct {
	network string // of LookupNetIP
	addrs   []netip.Addr
	err     error
}

// lookUp begins the lookup of host for a socket of that network. If limit is positive and the lookup takes
// longer, it fails. The caller calls close. The options have their defaults.
func (o *TCPOptions) lookUp(
	ctx context.Context, r *rand.Rand, limit time.Duration, network, host string,
) *lookup {
	networks := []string{"ip6", "ip4"}
	if family := o.family(network); family != "ip" {
		networks = []string{family}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &lookup{
		answers: make(chan found, len(networks)), left: len(networks),
		patience: time.NewTimer(lookupPatience), rand: r, end: func() { cancel(nil) },
	}
	late := &net.DNSError{Name: host, IsTimeout: true, IsTemporary: true}
	if limit > 0 {
		late.Err = fmt.Sprintf("no name server answered within %v", limit)
		stop := time.AfterFunc(limit, func() { cancel(late) }).Stop // without a deadline: see noDeadline
		l.end = func() { stop(); cancel(nil) }
	}
	for _, network := range networks {
		l.running.Add(1)
		ask := func() ([]netip.Addr, error) { return o.LookupNetIP(ctx, network, host) }
		spawn(ask, func(addrs []netip.Addr, err error) {
			defer l.running.Done()
			if err != nil && context.Cause(ctx) == error(late) {
				err = late
			}
			if err == nil && len(addrs) == 0 {
				err = &net.DNSError{Err: "no suitable address", Name: host, IsNotFound: true}
			}
			l.answers <- found{network, addrs, err}
		})
	}
	return l
}

// close ends the lookup and waits until it has ended.
func (l *lookup) close() {
	l.end()
	l.patience.Stop()
	l.running.Wait()
}

// first returns the addresses with which to begin, in the order in which to try them. IPv6 addresses are
// returned as soon as they are known, and IPv4 addresses after the resolutionDelay at the latest.
func (l *lookup) first() (addrs []netip.Addr, err error) {
	var delay <-chan time.Time
	for l.left > 0 {
		select {
		case f := <-l.answers:
			l.left--
			switch {
			case is[*panicError](f.err):
				return nil, f.err
			case f.err != nil:
				err = moreHopeful(err, f.err)
				continue
			case f.network == "ip6": // that family comes first
				addrs = slices.Concat(f.addrs, addrs)
			default:
				addrs = append(addrs, f.addrs...)
			}
			if slices.ContainsFunc(f.addrs, func(a netip.Addr) bool { return !a.Unmap().Is4() }) {
				return interleave(addrs, l.rand), nil
			}
			delay = time.After(resolutionDelay)
		case <-delay:
			return interleave(addrs, l.rand), nil
		}
	}
	if len(addrs) == 0 {
		return nil, err
	}
	return interleave(addrs, l.rand), nil
}

// moreHopeful returns the error of a lookup in which both families have failed: a, unless that says that
// there is no such host, or is nil.
func moreHopeful(a, b error) error {
	if dns, ok := a.(*net.DNSError); a == nil || ok && dns.IsNotFound {
		return b
	}
	return a
}
