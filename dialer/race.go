package dialer

import (
	"context"
	"errors"
	"fmt"
	"net"
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
// panic on the way ends the race and is in the error, as call has it.
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
