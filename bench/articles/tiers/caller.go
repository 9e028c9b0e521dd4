package tiers

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

// Caller is what the caller of a tier does about a failed request. The zero value does not
// try again.
type Caller struct {
	Policy backoff.Policy                                   // when to send the next request of a call, and when to give up; nil: one request
	Budget func(now func() time.Time) (retry.Budget, error) // what all calls of the tier ask for leave before each request; nil: nothing
	Final  bool                                             // a request is not repeated if a tier below has repeated its own, and failed
	Marked bool                                             // a request is not repeated if the call is made for one that is itself a repetition
}

// Person is the policy of users that press a button again when what they wanted has failed.
type Person struct {
	Presses  int           // how often at most, after the first time
	Again    float64       // the probability of each, if it is wanted
	From, To time.Duration // the pause before it, drawn uniformly
}

// DefaultPerson presses the button three times in all, as in the article's incident.
var DefaultPerson = Person{Presses: 2, Again: 1, From: 2 * time.Second, To: 20 * time.Second}

// Next implements [backoff.Policy].
func (p *Person) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	if a.N >= p.Presses || r.Float64() >= p.Again {
		return backoff.Step{}, false
	}
	return backoff.Step{Wait: backoff.Uniform(r, p.From, p.To)}, true
}

// The callers of the scenarios make three requests at most: at once, or with the backoff of
// the article.
var (
	twice      = Caller{Policy: backoff.Limit(&backoff.Exponential{Base: -1}, 2, 0)}
	backingOff = Caller{Policy: backoff.Limit(&backoff.Exponential{Base: 100 * ms, Cap: time.Second, Jitter: backoff.JitterFull}, 2, 0)}
)

func (c Caller) with(b func(func() time.Time) (retry.Budget, error)) Caller {
	c.Budget = b
	return c
}

// tenPercent is the library's default, which is the article's budget.
func tenPercent(func() time.Time) (retry.Budget, error) { return budget.New(nil) }

// behindBreaker is the library's default budget behind its default circuit breaker.
func behindBreaker(now func() time.Time) (retry.Budget, error) {
	breaker, err := budget.NewBreaker(&budget.BreakerOptions{Now: now})
	if err != nil {
		return nil, err
	}
	retries, err := budget.New(nil)
	if err != nil {
		return nil, err
	}
	return both{breaker, retries}, nil
}

// both admits what each of its two admits.
type both [2]retry.Budget

// Admit implements [retry.Budget].
func (b both) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	first, ok := b[0].Admit(last)
	if !ok {
		return nil, false
	}
	second, ok := b[1].Admit(last)
	if !ok {
		first(backoff.Verdict{Class: backoff.ClassStop, Skipped: true})
		return nil, false
	}
	return func(v backoff.Verdict) { first(v); second(v) }, true
}
