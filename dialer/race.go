package dialer

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// stagger is the head start of one address before the next is tried beside it:
// the Connection Attempt Delay of RFC 8305, section 5.
const stagger = 250 * time.Millisecond

// race connects to the first of addresses that answers. The next one starts
// when the one before it has failed or has been silent for the stagger, so that
// a black hole costs a quarter of a second and not the whole attempt. It
// returns when ctx ends, and not before every connection that lost is closed.
func race(ctx context.Context, addresses []string, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	var runners sync.WaitGroup
	defer func() { cancel(); runners.Wait() }()

	finish := make(chan finisher)
	start := func(address string) {
		runners.Go(func() {
			nc, err := dial(ctx, address)
			select {
			case finish <- finisher{nc, err}:
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
		case f := <-finish:
			if f.err == nil {
				return f.conn, nil
			}
			running--
			if first == nil {
				first = f.err
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

// finisher is how one address ended.
type finisher struct {
	conn net.Conn
	err  error
}
