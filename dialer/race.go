package dialer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
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

	results := make(chan dialResult)
	start := func(address string) {
		runners.Add(1)
		spawn(func() (net.Conn, error) { return dial(ctx, address) }, func(nc net.Conn, err error) {
			defer runners.Done()
			select {
			case results <- dialResult{nc, err}:
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
			if _, panicked := errors.AsType[*panicError](r.err); panicked {
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

// dialResult is how the dial of one address ended.
type dialResult struct {
	conn net.Conn
	err  error
}

// raceAvoiding is race, but it connects to an address that avoid reports only if all
// others fail.
func raceAvoiding(ctx context.Context, addresses []string, avoid func(string) bool, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	good := lastIf(addresses, avoid)
	if good == 0 || good == len(addresses) {
		return race(ctx, addresses, dial)
	}
	nc, err := race(ctx, addresses[:good], dial)
	if err == nil || ctx.Err() != nil {
		return nc, err
	}
	if _, panicked := errors.AsType[*panicError](err); panicked {
		return nil, err
	}
	return race(ctx, addresses[good:], dial)
}

// lastIf moves the elements for which bad returns true behind the others, and returns the
// number of the others.
func lastIf[T any](list []T, bad func(T) bool) (good int) {
	slices.SortStableFunc(list, func(a, b T) int {
		switch x, y := bad(a), bad(b); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for good < len(list) && !bad(list[good]) {
		good++
	}
	return good
}

// shuffler has the signature of [rand.Shuffle]. Several goroutines may call it at once.
type shuffler func(n int, swap func(i, j int))

// newShuffler returns a shuffler that draws from source under mu; a nil source means
// the functions of package rand.
func newShuffler(mu *sync.Mutex, source rand.Source) shuffler {
	if source == nil {
		return rand.Shuffle
	}
	return rand.New(&lockedSource{mu, source}).Shuffle
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
func interleave(addrs []netip.Addr, shuffle shuffler) []netip.Addr {
	var families [2][]netip.Addr
	firstIs4 := addrs[0].Unmap().Is4()
	seen := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		a = a.Unmap()
		if seen[a] {
			continue
		}
		seen[a] = true
		if a.Is4() == firstIs4 {
			families[0] = append(families[0], a)
		} else {
			families[1] = append(families[1], a)
		}
	}
	for _, f := range families {
		shuffle(len(f), func(i, j int) { f[i], f[j] = f[j], f[i] })
	}
	var order []netip.Addr
	for i := range max(len(families[0]), len(families[1])) {
		for _, f := range families {
			if i < len(f) {
				order = append(order, f[i])
			}
		}
	}
	return order
}
