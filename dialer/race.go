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

// race connects to the first of addresses that answers. It starts the next one when
// the one before has failed or has been silent for the stagger, so that an address
// which never answers costs a quarter of a second and not the whole attempt. It
// returns when ctx ends, but never before every connection that lost is closed. A
// panic of dial ends the race and is in the error, as for call.
func race(ctx context.Context, addresses []string, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	var runners sync.WaitGroup
	defer func() { cancel(); runners.Wait() }()

	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	start := func(address string) {
		runners.Add(1)
		spawn(func() (net.Conn, error) { return dial(ctx, address) }, func(nc net.Conn, err error) {
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

	start(addresses[0])
	next, running := 1, 1
	timer := time.NewTimer(stagger)
	defer timer.Stop()
	var first error
	for running > 0 {
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			if is[*panicError](r.err) {
				return nil, r.err
			}
			running--
			if first == nil {
				first = r.err
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if next < len(addresses) {
			start(addresses[next])
			next, running = next+1, running+1
			timer.Reset(stagger)
		}
	}
	if next > 1 {
		first = fmt.Errorf("%w (the first of %d addresses, none answered)", first, next)
	}
	return nil, first
}

// raceAvoiding is race, but it connects to an address that avoid reports only if all
// others fail.
func raceAvoiding(ctx context.Context, addresses []string, avoid func(string) bool, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	good := lastIf(addresses, avoid)
	if good == 0 || good == len(addresses) {
		return race(ctx, addresses, dial)
	}
	nc, err := race(ctx, addresses[:good], dial)
	if err == nil || ctx.Err() != nil || is[*panicError](err) {
		return nc, err
	}
	return race(ctx, addresses[good:], dial)
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
func interleave(addrs []netip.Addr, r *rand.Rand) (order []netip.Addr) {
	firstIs4 := addrs[0].Unmap().Is4()
	all := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		all[i] = a.Unmap()
	}
	slices.SortFunc(all, netip.Addr.Compare)
	all = slices.Compact(all)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := lastIf(all, func(a netip.Addr) bool { return a.Is4() != firstIs4 })
	turn, other := all[:n], all[n:]
	for len(turn) > 0 || len(other) > 0 {
		if len(turn) > 0 {
			order, turn = append(order, turn[0]), turn[1:]
		}
		turn, other = other, turn
	}
	return order
}
