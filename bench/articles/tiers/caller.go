package tiers

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/articles/caller"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Caller is what a caller of a tier does about a failed request. The zero value does not try again. All
// calls of a tier share its budget.
type Caller struct {
	caller.Caller
	Person *Person `json:"person"` // that tries again instead; nil: the caller is a program
	Final  bool    `json:"final"`  // a request is not repeated if a tier below has repeated its own, and failed
	Marked bool    `json:"marked"` // a request is not repeated if the call is made for one that is itself a repetition
}

// Policy returns when to send the next request of a call, and when to give up.
func (c *Caller) Policy() (backoff.Policy, error) {
	if c.Person != nil {
		return c.Person, nil
	}
	return c.Caller.Policy()
}

// Person is the policy of users that press a button again when what they wanted has failed.
type Person struct {
	Presses int           `json:"presses"` // how often at most, after the first time
	Again   float64       `json:"again"`   // the probability of each, if it is wanted
	From    time.Duration `json:"from"`    // the pause before it, drawn uniformly from From to To
	To      time.Duration `json:"to"`
}

// check returns an error if p makes no sense.
func (p *Person) check() error {
	if p.Presses < 0 || !(p.Again >= 0 && p.Again <= 1) || p.From < 0 || p.To < p.From {
		return errors.New("want -presses of at least 0, -again of 0 to 1, and -pause-from before -pause-to")
	}
	return nil
}

// Next implements [backoff.Policy].
func (p *Person) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	if a.N >= p.Presses || r.Float64() >= p.Again {
		return backoff.Step{}, false
	}
	return backoff.Step{Wait: backoff.Uniform(r, p.From, p.To)}, true
}
