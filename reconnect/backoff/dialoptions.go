package backoff

import (
	"math"
	"time"
)

// DialOptions are what [Dials] of one kind have in common. They must not change once they
// are in use. Nil means the defaults.
type DialOptions struct {
	Policy        Policy        // default [Default]
	OneConnection bool          // there is one dial at a time: a handshake that hangs is given up
	StartSpread   time.Duration // the first dial of all waits for a draw from [0, StartSpread); default, and negative: no wait
	StableAfter   time.Duration // a session that was ready for so long ends the outage; default 10 s; negative: any that was ready
	Credit        float64       // times the time that a shorter session was ready: the outage becomes so much younger; default 4; negative: 0
	Keep          time.Duration // for how long a handshake is kept; default 6 h; negative: for ever
}

// WithDefaults returns a copy with the default in the place of each field that is zero.
func (o *DialOptions) WithDefaults() *DialOptions {
	var p DialOptions
	if o != nil {
		p = *o
	}
	p.Policy = orDefault(p.Policy)
	if p.StableAfter == 0 {
		p.StableAfter = 10 * time.Second
	}
	switch {
	case p.Credit == 0 || math.IsNaN(p.Credit):
		p.Credit = 4
	case p.Credit < 0:
		p.Credit = 0
	}
	switch {
	case p.Keep == 0:
		p.Keep = 6 * time.Hour
	case p.Keep < 0:
		p.Keep = longest
	}
	return &p
}
