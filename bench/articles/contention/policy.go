package contention

import (
	"time"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Policy is one of the five rules that are compared.
type Policy struct {
	Name   string
	Policy backoff.Policy
}

// The original's settings.
const (
	base    = 5 * time.Millisecond
	longest = 2 * time.Second
)

// Policies returns the five rules: none, exponential, equal, full, decorrelated.
func Policies() []Policy {
	exponential := func(j backoff.Jitter) backoff.Policy {
		return &backoff.Exponential{Base: 2 * base, Cap: longest, Jitter: j}
	}
	return []Policy{
		{"none", &backoff.Exponential{Base: -1}},
		{"exponential", exponential(backoff.JitterNone)},
		{"equal", exponential(backoff.JitterEqual)},
		{"full", exponential(backoff.JitterFull)},
		{"decorrelated", &classic.Decorrelated{Base: base, Cap: longest}},
	}
}

// NameOf returns the name of a rule.
func NameOf(p Policy) string { return p.Name }
