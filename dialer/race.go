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

	"github.com/redial-go/redial/reconnect/backoff"
)

// stagger is the head start of one address before the next is tried beside it:
// the Connection Attempt Delay of RFC 8305, section 5.
const stagger = 250 * time.Millisecond

// candidates are the addresses of a race.
type candidates struct {
	known    []netip.Addr          // in the order in which to try them
	more     <-chan found          // delivers addresses that are found later, or nil
	patience <-chan time.Time      // how long to wait for more when all known ones have failed
	avoid    func(netip.Addr) bool // these are tried only if all others fail
	rand     *rand.Rand            // shuffles more
}

// race connects to the first of the candidates that answers. It starts the next one when
// the one before has failed or has been silent for the stagger, so that an address
// which never answers costs a quarter of a second and not the whole attempt. It
// returns when ctx ends, but never before every connection that lost is closed. A
// panic of dial ends the race and is in the error, as for call.
func (c candidates) race(
	ctx context.Context, dial func(context.Context, netip.Addr) (net.Conn, error),
) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	var runners sync.WaitGroup
	defer func() { cancel(); runners.Wait() }()

	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	start := func(a netip.Addr) {
		runners.Add(1)
		spawn(func() (net.Conn, error) { return dial(ctx, a) }, func(nc net.Conn, err error) {
			defer runners.Done()
			select {
			case results <- result{nc, err}:
			case <-ctx.Done():
				if nc != nil {
					nc.Close()
				}
			}
		})
	}

	good := lastIf(c.known, c.avoid)
	next, avoided := c.known[:good:good], c.known[good:]
	timer := time.NewTimer(stagger)
	defer timer.Stop()
	var first error
	begun, running, due := 0, 0, true // due: the next one may start
	for {
		if len(next) == 0 && running == 0 {
			next, avoided = avoided, nil
		}
		if due && len(next) > 0 {
			start(next[0])
			next, begun, running, due = next[1:], begun+1, running+1, false
			timer.Reset(stagger)
		}
		patience := c.patience
		if running > 0 {
			patience = nil
		} else if c.more == nil {
			break
		}
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			if is[*panicError](r.err) {
				return nil, r.err
			}
			running, due = running-1, true
			if first == nil {
				first = r.err
			}
		case f := <-c.more:
			if is[*panicError](f.err) {
				return nil, f.err
			}
			c.more = nil
			if f.err != nil {
				continue
			}
			isKnown := func(a netip.Addr) bool { return slices.Contains(c.known, a) }
			added := slices.DeleteFunc(interleave(f.addrs, c.rand), isKnown)
			good := lastIf(added, c.avoid)
			next, avoided = alternate(added[:good], next), append(avoided, added[good:]...)
		case <-timer.C:
			due = true
		case <-patience:
			c.more = nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if begun > 1 {
		first = fmt.Errorf("%w (the first of %d addresses, none answered)", first, begun)
	}
	return nil, first
}

// lastIf moves the elements for which bad returns true behind the others, and returns the
// number of the others.
func lastIf[T any](list []T, bad func(T) bool) (good int) {
	var last []T
	for _, x := range list {
		if bad(x) {
			last = append(last, x)
			continue
		}
		list[good] = x
		good++
	}
	copy(list[good:], last)
	return good
}

// newRand returns random numbers from source, drawn under mu; a nil source means the functions of
// math/rand/v2. Several goroutines may use them.
func newRand(mu *sync.Mutex, source rand.Source) *rand.Rand {
	if source == nil {
		return backoff.Rand()
	}
	return rand.New(&lockedSource{mu, source})
}

// lockedSource draws one number at a time.
type lockedSource struct {
	mu     *sync.Mutex
	source rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

// interleave returns addresses in the order in which to try them: each family
// shuffled, and the families in turn (RFC 8305, section 4), beginning with the family
// that the resolver put first.
func interleave(addrs []netip.Addr, r *rand.Rand) []netip.Addr {
	firstIs4 := addrs[0].Unmap().Is4()
	all := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		all[i] = a.Unmap()
	}
	slices.SortFunc(all, netip.Addr.Compare)
	all = slices.Compact(all)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := lastIf(all, func(a netip.Addr) bool { return a.Is4() != firstIs4 })
	return alternate(all[:n], all[n:])
}

// alternate returns the elements of a and b in turn, beginning with a.
func alternate(a, b []netip.Addr) (order []netip.Addr) {
	for len(a) > 0 || len(b) > 0 {
		if len(a) > 0 {
			order, a = append(order, a[0]), a[1:]
		}
		a, b = b, a
	}
	return order
}
