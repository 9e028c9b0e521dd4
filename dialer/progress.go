package dialer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Progress is how far a DialContext of a [Dialer] has come. For a log:
//
//	Notify: func(p dialer.Progress) {
//		switch {
//		case !p.Done:
//			log.Printf("%s: away (%v), next try in %v", p.Address, p.Err, p.Wait.Round(time.Second))
//		case p.Err == nil && p.Tries > 1:
//			log.Printf("%s: back after %v", p.Address, p.Elapsed)
//		}
//	}
type Progress struct {
	Network, Address string

	Tries   int           // so far
	Elapsed time.Duration // since DialContext was called
	Err     error         // of the last try; with Done, what DialContext returns: nil for a connection
	Wait    time.Duration // until the next try or the gate before it; 0 with Done
	Done    bool          // DialContext is about to return
}

// dialing is one DialContext.
type dialing struct {
	*Dialer
	Progress
	began time.Time
	conn  net.Conn
}

// try dials once.
func (c *dialing) try(ctx context.Context) error {
	c.Tries++
	one, cancel := c.limited(ctx)
	defer cancel()
	nc, err := call(func() (net.Conn, error) { return c.dialOnce(one, c.Network, c.Address) })
	raise(err)
	switch {
	case err == nil && ctx.Err() != nil:
		nc.Close() // it came too late
		return context.Cause(ctx)
	case err == nil:
		c.conn = nc
		return nil
	case one.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return context.Cause(one) // says which limit it was
	case hopeless(err):
		return backoff.Permanent(err)
	}
	return err
}

// limited returns ctx with the limit on this try.
func (c *dialing) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.ConnectTimeout < 0 {
		return ctx, func() {}
	}
	limit := limitsFor(backoff.TryFrom(ctx), c.ConnectTimeout, 0).connect
	return context.WithTimeoutCause(ctx, limit, &limitError{fmt.Sprintf("not connected within %v", limit)})
}

// notify completes p and calls Notify.
func (c *dialing) notify(p Progress) {
	if c.Notify == nil {
		return
	}
	p.Network, p.Address, p.Tries, p.Elapsed = c.Network, c.Address, c.Tries, time.Since(c.began)
	c.Notify(p)
}

// failure returns err in the form in which net.Dialer would return it.
func (c *dialing) failure(err error) error {
	if given, ok := err.(*net.OpError); ok {
		return given
	}
	if given, ok := err.(*backoff.RetryError); ok {
		short := *given
		short.Err = c.shorten(given.Err)
		err = &short
	}
	return &net.OpError{Op: "dial", Net: c.Network, Addr: dialAddr{c.Network, c.Address}, Err: err}
}

// shorten returns err without what the error around it says already.
func (c *dialing) shorten(err error) error {
	inner, ok := err.(*net.OpError)
	if ok && inner.Op == "dial" && inner.Addr != nil && inner.Addr.String() == c.Address {
		return inner.Err
	}
	return err
}

// hopeless reports whether err says that the address can never work.
func hopeless(err error) bool {
	var (
		address *net.AddrError
		parse   *net.ParseError
		network net.UnknownNetworkError
		invalid net.InvalidAddrError
	)
	return errors.As(err, &address) || errors.As(err, &parse) || errors.As(err, &network) || errors.As(err, &invalid)
}

// dialAddr is the network and address of a dial, as a net.Addr.
type dialAddr struct{ network, address string }

func (a dialAddr) Network() string { return a.network }
func (a dialAddr) String() string  { return a.address }
