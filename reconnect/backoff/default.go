package backoff

import "time"

// The numbers of [Default] beside those of [Paced], [DefaultConnect] and
// [DefaultHandshake]. bench/DEFAULTS.md says why they are what they are.
const (
	connectShare   = 0.25 // times the outage
	connectCap     = time.Minute
	handshakeShare = 4 // times the outage
	handshakeCap   = 6 * time.Hour
)

// Default returns the policy that is used where none is given. Its waits are those of
// [Paced]: the first from [0, 2 s); a client that is refused in the first second tries
// once more in the next; then half of the time that the outage has lasted, at least
// 2.4 s and at most 30 s, or 1 min after an overload, jittered over its upper half. The
// limit on connecting is 15 s, and after an overload a quarter of the outage, up to
// 1 min. The limit on the handshake is 30 s, and after an overload four times the
// outage, up to 6 h, so that clients are still there when a server that works off a long
// queue comes to them. It never gives up. Every call returns the same value.
//
// It was chosen by simulation: bench/DEFAULTS.md in the repository has the tables, and
// the command that makes them again.
func Default() Policy { return standard }

// It is made without Patient, because that refers to it.
var standard Policy = &patient{
	policy:    &Paced{},
	connect:   Patience{Share: connectShare, Cap: connectCap}.withDefaults(DefaultConnect, 6),
	handshake: Patience{Share: handshakeShare, Cap: handshakeCap}.withDefaults(DefaultHandshake, 10),
}

func orDefault(p Policy) Policy {
	if p == nil {
		return standard
	}
	return p
}
