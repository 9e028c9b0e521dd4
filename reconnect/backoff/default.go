package backoff

import "time"

// The numbers behind [Default] that are not those of [Paced], [DefaultConnect] and
// [DefaultHandshake]. bench/DEFAULTS.md says why they are what they are.
const (
	connectShare   = 0.25 // of the outage
	connectCap     = time.Minute
	handshakeShare = 4 // times the outage
	handshakeCap   = 6 * time.Hour
)

// Default returns the policy that is used where none is given. Its waits are those
// of [Paced]: the first from [0, 2 s); who was refused in the first second tries
// once more in the second; then half of the time that the outage has lasted, at
// least 2.4 s and at most 30 s, or 1 min after an overload, jittered over its upper
// half. The limit on connecting is 15 s, after an overload a quarter of the outage
// up to 1 min. The limit on the handshake is 30 s, after an overload four times the
// outage up to 6 h, since a server that is working off a long queue must find those
// who wait in it still there. It never gives up. Every call returns the same value.
//
// It was chosen by simulation: bench/DEFAULTS.md in the repository has the tables,
// and the command that makes them again.
func Default() Policy { return standard }

// Without Patient, since that refers to it.
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
