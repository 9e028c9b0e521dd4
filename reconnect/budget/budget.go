package budget

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

var (
	_ retry.Budget = (*Budget)(nil)
	_ retry.Budget = (*Breaker)(nil)
)

// Budget is a retry budget: a token bucket that retries draw from and successes fill. By default retries are
// at most a tenth of the successful first attempts, and 30 more in a burst, as in Isaev's article. The
// successes of retries add nothing, because otherwise a partial failure would get twice the budget.
//
// A retry that was never begun (Skipped) returns its tokens, but not one canceled later, which may have cost
// the server work.
//
// It is a [retry.Budget], and safe for concurrent use.
type Budget struct {
	o                           Options
	first, retry, afterOverload func(backoff.Verdict) // done of a first attempt, a retry, a retry after an overload

	mu     sync.Mutex // guards tokens
	tokens int
}

// Options are the numbers of a [Budget] in tokens, by default hundredths of a retry; nil means the defaults.
type Options struct {
	Capacity      int // size of the bucket, which starts full. Default 3000
	Retry         int // price of a retry, rejected if the bucket holds less. Default 100. Negative: nothing
	AfterOverload int // price after ClassOverload. Default: Retry. Above Capacity: no such retry
	First         int // added by a successful first attempt. Default 10. Negative: nothing
	Again         int // added by a successful retry. Default 0. Negative: its price
	Failure       int // taken by each failed attempt, down to 0 tokens. Default 0
	Reserve       int // a retry is rejected unless the bucket holds more; below Capacity. Default 0
}

// New returns a full Budget, or an error that names an option that must not be negative or permits no retry at
// all.
func New(o *Options) (*Budget, error) {
	b := &Budget{}
	if o != nil {
		b.o = *o
	}
	err := cmp.Or(notNegative("Capacity", b.o.Capacity), notNegative("AfterOverload", b.o.AfterOverload),
		notNegative("Failure", b.o.Failure), notNegative("Reserve", b.o.Reserve))
	if err != nil {
		return nil, err
	}
	b.o.defaults()
	switch {
	case min(b.o.Retry, b.o.AfterOverload) > b.o.Capacity:
		return nil, fmt.Errorf("budget: option Retry is %d and Capacity %d: no retry could ever be made", b.o.Retry, b.o.Capacity)
	case b.o.Reserve >= b.o.Capacity:
		return nil, fmt.Errorf("budget: option Reserve is %d and Capacity %d: no retry could ever be made", b.o.Reserve, b.o.Capacity)
	}
	b.tokens = b.o.Capacity
	b.first = func(v backoff.Verdict) { b.done(v, 0, b.o.First) }
	b.retry = func(v backoff.Verdict) { b.done(v, b.o.Retry, b.again(b.o.Retry)) }
	b.afterOverload = func(v backoff.Verdict) { b.done(v, b.o.AfterOverload, b.again(b.o.AfterOverload)) }
	return b, nil
}

func (o *Options) defaults() {
	o.Capacity = cmp.Or(o.Capacity, 3000)
	o.Retry = max(cmp.Or(o.Retry, 100), 0)
	o.AfterOverload = cmp.Or(o.AfterOverload, o.Retry)
	o.First = max(cmp.Or(o.First, 10), 0)
}

// Admit implements [retry.Budget]. First attempts are always admitted.
func (b *Budget) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	if last.Class == backoff.ClassOK {
		return b.first, true
	}
	cost, done := b.o.Retry, b.retry
	if last.Class == backoff.ClassOverload {
		cost, done = b.o.AfterOverload, b.afterOverload
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < cost || b.tokens <= b.o.Reserve {
		return nil, false
	}
	b.tokens -= cost
	return done, true
}

// Tokens returns the number of tokens in the bucket.
func (b *Budget) Tokens() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens
}

func (b *Budget) again(cost int) int {
	if b.o.Again < 0 {
		return cost
	}
	return b.o.Again
}

// done ends a try for which cost was taken. It adds tokens after a success, gives cost back
// if the try was never begun, and takes tokens for a failure.
func (b *Budget) done(v backoff.Verdict, cost, add int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case v.Class == backoff.ClassOK:
		b.add(add)
	case v.Class != backoff.ClassStop:
		b.tokens = max(b.tokens-b.o.Failure, 0)
	case v.Skipped:
		b.add(cost)
	}
}

// add adds n tokens, as far as there is room for them.
func (b *Budget) add(n int) { b.tokens += min(n, b.o.Capacity-b.tokens) }
