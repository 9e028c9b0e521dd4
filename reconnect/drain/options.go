package drain

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"
)

// Options are the settings of a [Group]. A nil *Options and the zero value are the defaults. [New]
// copies the Options.
type Options struct {
	// Window is the time over which [Group.Drain] closes the connections, one after another. The
	// Window must be long enough for the other servers: the number of clients, divided by the
	// handshakes per second that the other servers can take. Default: 60 s. Negative: all
	// connections are closed at once.
	Window time.Duration

	// Lead is how long the server goes on serving and accepting, with [Group.Ready] false, before
	// the Window begins: the time that load balancers need to notice. Default: 15 s. Negative:
	// no lead.
	Lead time.Duration

	// MaxAge is the age at which a connection is closed although nothing is wrong, like MAX_CONNECTION_AGE
	// of gRPC, so that long-lived connections move to servers that were added. The age is drawn for each
	// connection from 0.9 to 1.1 times MaxAge, so that connections which began together do not end
	// together. During a drain MaxAge has no effect. Default: 0, no limit.
	MaxAge time.Duration

	// Warn is how long before its close the notice of a connection is called: see
	// [Group.AddNotice]. Warn must not exceed the Window, nor half of MaxAge. Default: a quarter
	// of the Window, or of MaxAge if that is shorter. Negative: a notice is called at the moment
	// of the close, so that the client has no time to leave.
	Warn time.Duration

	// Closers is how many closers and notices may run at a time. A call that takes longer than a
	// second does not count any more; there are never more than 16 times Closers in all. With fewer
	// Closers than the closes per second times the seconds that a close takes, closes come late.
	// Default: 256. Negative: an error.
	Closers int

	// CloseTimeout is how long a closer or a notice may run. After that the call is hung: Drain
	// does not wait for it, and [Stats] count it. CloseTimeout is also how long Drain takes at
	// most once its context has ended. Default: 10 s. Negative: an error.
	CloseTimeout time.Duration

	// Advice tells the clients when and where to come back, in the reason of the close frame. Its
	// Wait and Spread are in the header Retry-After of a refusal as well: see [Group.Handler].
	// Default: nothing, because the Window spreads the clients already.
	Advice Advice

	// Rand is the source of all draws. The Group calls Rand under a lock. Default: a PCG with a
	// random seed.
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
