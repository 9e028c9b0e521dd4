package backoff

import "time"

// The numbers behind [Default], all of them. They are well-founded guesses:
// the herd lab is to choose them by evidence.
const (
	defaultSpread       = 2 * time.Second // a lone client is back 1.5 s after a drop if the server was away for 1 s (median)
	defaultBase         = time.Second
	defaultCap          = 30 * time.Second
	defaultOverloadCap  = 5 * time.Minute
	defaultConnectCap   = time.Minute     // from DefaultConnect
	defaultHandshakeCap = 5 * time.Minute // from DefaultHandshake
)

// Default returns the policy that is used where none is given: a first wait
// drawn from [0, 2 s); then full jitter from 1 s, doubling, up to 30 s, which
// after overload goes on growing to 5 min. The limit on connecting is 10 s and
// doubles with each overload up to 1 min, that on the handshake 30 s, up to
// 5 min. It never gives up. Every call returns the same value.
func Default() Policy { return standard }

// Without the constructors, since those refer to it.
var standard Policy = &patient{
	policy: &first{
		spread: defaultSpread,
		policy: &Exponential{Base: defaultBase, Cap: defaultCap, OverloadCap: defaultOverloadCap},
	},
	connect:   Patience{Base: DefaultConnect, Factor: 2, Cap: defaultConnectCap},
	handshake: Patience{Base: DefaultHandshake, Factor: 2, Cap: defaultHandshakeCap},
}

func orDefault(p Policy) Policy {
	if p == nil {
		return standard
	}
	return p
}
