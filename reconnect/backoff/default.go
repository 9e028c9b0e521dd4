package backoff

// Default returns the policy that is used where none is given: a [Prompt] with its
// defaults. The first wait is drawn from [0, 2 s), and a client that is refused in the
// first second tries once more in the next. Then it waits for half of the time that the
// outage has lasted, at least 2.4 s and at most 10 s, or 15 s after an overload, jittered
// over the upper half. A dial may take 16 s to connect. A handshake that is not answered
// within 10 s hangs: it is kept, and another dial begins beside it. It never gives up.
// Every call returns the same value.
//
// It was chosen by simulation: bench/DEFAULTS.md in the repository has the tables, and
// the command that makes them again.
func Default() Policy { return standard }

var standard Policy = &Prompt{}

func orDefault(p Policy) Policy {
	if p == nil {
		return standard
	}
	return p
}
