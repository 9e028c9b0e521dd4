package drain

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"
)

// Options are the options of [New], which copies them. A nil *Options is fine.
type Options struct {
	// Window is the time over which [Group.Drain] closes the connections. It must be at least the number of
	// clients divided by the handshakes per second that the other servers can take: 20 s for 10,000 and 500.
	// Default: 60 s. Negative: all connections are closed immediately.
	Window time.Duration

	// Lead is how long the server continues to serve and accept, with [Group.Ready] false, before the Window
	// begins. Default: 15 s. Negative: no lead.
	Lead time.Duration

	// MaxAge is the age at which a healthy connection is closed, like MAX_CONNECTION_AGE of gRPC. The age is
	// drawn for each connection from 0.9 to 1.1 times MaxAge. MaxAge has no effect during a drain. Zero means
	// no limit.
	MaxAge time.Duration

	// Warn is the time between the notice of a connection and its close: see [Group.AddNotice]. It must not
	// exceed the Window, nor half of MaxAge. Default: a quarter of the Window, or of MaxAge if that is shorter.
	// Negative: a notice is called at the moment of the close.
	Warn time.Duration

	// Closers is the maximum number of concurrent closers and notices. A call that takes longer than a second
	// no longer counts, so that a dead peer delays no other connection, up to a total of 16 times Closers.
	// Closes are late if Closers is less than the closes per second times the seconds that a close takes.
	// Default: 256. Negative: an error.
	Closers int

	// CloseTimeout is how long a closer or a notice may run. After that it is hung: Drain does not wait for it,
	// and [Stats] and [Error] count it. CloseTimeout also limits Drain once its context is done. Default: 10 s.
	// Negative: an error.
	CloseTimeout time.Duration

	// Advice tells the clients when and where to reconnect, in the reason of the close frame. Its Wait and
	// Spread are also used for Retry-After: see [Group.Handler]. Default: none.
	Advice Advice

	// Rand is the source of all draws, called under a lock. Default: a PCG with a random seed.
	Rand rand.Source
}

const (
	// closeCode is the code of the close frame: the service restarts.
	closeCode = 1012

	// placeTime is how long a call may hold its place among the Closers.
	placeTime = time.Second
)

// withDefaults returns a copy of o in which no field needs a default.
func (o *Options) withDefaults() Options {
	var p Options
	if o != nil {
		p = *o
	}
	p.Window = max(cmp.Or(p.Window, time.Minute), 0)
	p.Lead = max(cmp.Or(p.Lead, 15*time.Second), 0)
	if p.Warn == 0 {
		p.Warn = p.Window / 4
		if p.MaxAge > 0 {
			p.Warn = min(p.Warn, p.MaxAge/4)
		}
	}
	p.Warn = max(p.Warn, 0)
	p.Closers = cmp.Or(p.Closers, 256)
	p.CloseTimeout = cmp.Or(p.CloseTimeout, 10*time.Second)
	if p.Rand == nil {
		p.Rand = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	return p
}

// validate returns an error that names the field which is wrong. The defaults are in place.
func (o *Options) validate() error {
	switch {
	case o.MaxAge < 0:
		return fmt.Errorf("Options.MaxAge: %v is negative", o.MaxAge)
	case o.Warn > o.Window:
		return fmt.Errorf("Options.Warn: %v is longer than the Window, %v", o.Warn, o.Window)
	case o.MaxAge > 0 && o.Warn > o.MaxAge/2:
		return fmt.Errorf("Options.Warn: %v is longer than half of MaxAge, %v", o.Warn, o.MaxAge)
	case o.Closers < 0:
		return fmt.Errorf("Options.Closers: %d is negative", o.Closers)
	case o.CloseTimeout < 0:
		return fmt.Errorf("Options.CloseTimeout: %v is negative", o.CloseTimeout)
	}
	if err := o.Advice.validate(); err != nil {
		return fmt.Errorf("Options.Advice.%w", err)
	}
	return nil
}
