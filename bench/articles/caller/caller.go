// Package caller says what the callers in the models of the retries article do about a failed request:
// as data that a file can hold, and in the terms of the library, as a backoff.Policy and a budget of
// package reconnect/budget.
package caller

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
	"github.com/redial-go/redial/reconnect/budget"
)

// Caller is what a caller does about a failed request. The zero value does not try again.
type Caller struct {
	Retries      int           `json:"retries"`       // at most, after the first request of a call
	Base         time.Duration `json:"base"`          // the wait before the first retry, which doubles with each; 0: retries at once
	Cap          time.Duration `json:"cap"`           // the longest wait; 0: 30 s
	Jitter       string        `json:"jitter"`        // how a wait is drawn: none, full, equal; "": none
	Budget       string        `json:"budget"`        // a bucket that pays for retries: the share of the first tries that succeed, such as "10%", or grpc, aws, aws-2026; or envoy, which counts what is under way; "": none
	RetryBreaker string        `json:"retry_breaker"` // the share of failures at which retries are refused, such as "10%"; "": none
	Breaker      string        `json:"breaker"`       // the share of failures at which calls are refused, such as "10%": the article's breaker; default: the library's; "": none
}

const ms = time.Millisecond

// none is a text that means the same as no text, for flags that take something away.
const none = "none"

// jitter is a kind of jitter with its name.
type jitter struct {
	name string
	kind backoff.Jitter
}

var jitters = []jitter{{none, backoff.JitterNone}, {"full", backoff.JitterFull}, {"equal", backoff.JitterEqual}}

// bucket is the name of a budget that is no share of the first tries, with its options.
type bucket struct {
	name    string
	options *budget.Options
}

var buckets = []bucket{
	{"grpc", grpc(10, 0.1)}, // the numbers of gRFC A6's example
	{"aws", aws()},
	{"aws-2026", aws2026()},
}

// Presets returns the names of the budgets that are no share.
func Presets() []string {
	return append(pick.Names(buckets, func(b bucket) string { return b.name }), envoyName)
}

// Check returns an error that names what is wrong with c, if anything is.
func (c *Caller) Check() error {
	switch {
	case c.Retries < 0 || c.Retries > 1000:
		return fmt.Errorf("want 0 to 1000 retries, not %d", c.Retries)
	case c.Base == 0 && c.Cap != 0:
		return fmt.Errorf("a cap of %v means nothing without a base", c.Cap)
	case c.Base == 0 && c.Jitter != "" && c.Jitter != none:
		return fmt.Errorf("jitter %q means nothing without a base", c.Jitter)
	case c.Cap != 0 && c.Cap < c.Base:
		return fmt.Errorf("want a cap of at least the base, %v, not %v", c.Base, c.Cap)
	}
	if _, err := c.Policy(); err != nil {
		return err
	}
	_, err := c.NewBudget(time.Now)
	return err
}

// never is the policy of callers that do not retry.
type never struct{}

func (never) Next(backoff.History, *rand.Rand) (backoff.Step, bool) { return backoff.Step{}, false }

// Policy returns when to send the next request of a call, and when to give up.
func (c *Caller) Policy() (backoff.Policy, error) {
	kind := jitters[0]
	if c.Jitter != "" {
		var err error
		if kind, err = pick.One("jitter", c.Jitter, jitters, func(j jitter) string { return j.name }); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Retries == 0:
		return never{}, nil
	case c.Base == 0:
		return backoff.Limit(&backoff.Exponential{Base: -1}, c.Retries, 0), nil
	}
	return backoff.Limit(&backoff.Exponential{Base: c.Base, Cap: c.Cap, Jitter: kind.kind}, c.Retries, 0), nil
}

// NewBudget returns the budget that must admit each request of a caller, or nil if there is none. now is
// its clock.
func (c *Caller) NewBudget(now func() time.Time) (retry.Budget, error) {
	var all all
	for _, one := range []struct {
		key, text string
		make      func(text string, now func() time.Time) (retry.Budget, error)
	}{{"breaker", c.Breaker, newBreaker}, {"retry_breaker", c.RetryBreaker, newRetryBreaker}, {"budget", c.Budget, newBudget}} {
		if one.text == "" || one.text == none {
			continue
		}
		b, err := one.make(one.text, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.key, err)
		}
		all = append(all, b)
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return all, nil
}

// newBudget returns a bucket of hundredths of retries: 30 retries at once, and the share of the first
// tries that succeed. With 10 % it is the article's, and the library's default.
func newBudget(text string, _ func() time.Time) (retry.Budget, error) {
	if text == envoyName {
		return &envoy{}, nil
	}
	for _, one := range buckets {
		if text == one.name {
			return budget.New(one.options)
		}
	}
	percent, err := percent(text, strings.Join(Presets(), ", "))
	if err != nil {
		return nil, err
	}
	return budget.New(&budget.Options{Capacity: 3000, Retry: 100, First: percent})
}

// newBreaker returns the article's breaker that opens at a share of failures. A whole call is
// admitted or not, all its requests are counted, and half open lets every call pass.
func newBreaker(text string, now func() time.Time) (retry.Budget, error) {
	if text == "default" {
		return budget.NewBreaker(&budget.BreakerOptions{Now: now})
	}
	percent, err := percent(text, "default")
	if err != nil {
		return nil, err
	}
	return budget.NewBreaker(&budget.BreakerOptions{
		Window: 200 * ms, MinSamples: 100, Share: float64(percent) / 100,
		Open: 100 * ms, HalfOpen: -1, Trials: 100, PassRetries: true, Now: now,
	})
}

// newRetryBreaker returns the article's breaker that refuses retries alone.
func newRetryBreaker(text string, now func() time.Time) (retry.Budget, error) {
	percent, err := percent(text, "")
	if err != nil {
		return nil, err
	}
	return budget.NewBreaker(&budget.BreakerOptions{Window: 200 * ms, Share: float64(percent) / 100, MinSamples: 1, Open: -1, Now: now})
}

// percent returns the number of a text such as "10%". An error names what else there is.
func percent(text, others string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err == nil && strings.HasSuffix(text, "%") && n >= 1 && n <= 100 {
		return n, nil
	}
	if others != "" {
		others = ", or one of " + others
	}
	return 0, fmt.Errorf("want a whole percentage from 1%% to 100%%%s, not %q", others, text)
}

// all admits what each of several budgets admits.
type all []retry.Budget

// Admit implements [retry.Budget].
func (b all) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	told := make([]func(backoff.Verdict), 0, len(b))
	done = func(v backoff.Verdict) {
		for _, f := range told {
			f(v)
		}
	}
	for _, one := range b {
		f, ok := one.Admit(last)
		if !ok {
			done(backoff.Verdict{Class: backoff.ClassStop, Skipped: true})
			return nil, false
		}
		told = append(told, f)
	}
	return done, true
}
