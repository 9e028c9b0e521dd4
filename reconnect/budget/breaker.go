package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Breaker is a circuit breaker: when too many of the recent tries have failed it
// opens, and refuses every try for a while; then it is half open, and lets a few
// through at a time, whose outcomes decide whether it closes (Nygard, "Release
// It!"). It bounds how many are under way then, not how many results are in: a
// breaker that lets all traffic pass until it has results lets a storm pass. Those
// few are first tries: a retry is admitted ahead of its wait, and three that wait
// for an hour would keep everybody out for as long.
//
// A try that ends with ClassStop is not counted, whether it was begun or not. It only
// gives its place back if it was let through half open.
//
// It is a [backoff.Budget], and safe for concurrent use.
type Breaker struct {
	o BreakerOptions

	mu     sync.Mutex // guards what follows
	state  BreakerState
	turn   uint64    // counts changes of state: a try of an earlier one says nothing any more
	opened time.Time // when it opened last
	recent window    // while closed
	trials tally     // while half open
	under  int       // tries under way that were admitted half open
}

// BreakerOptions are the options of [NewBreaker]; nil has the defaults.
type BreakerOptions struct {
	Window      time.Duration    // what counts as recent, to a twentieth. Default 10 s
	MinSamples  int              // so many recent tries are needed to open. Default 20
	Share       float64          // of failures among them from which on it opens. Default 0.5
	Open        time.Duration    // how long it stays open. Default 5 s
	HalfOpen    int              // how many first tries are let through at a time when half open. Default 3. Negative: all, as in document 002
	Trials      int              // so many outcomes decide then. Default: HalfOpen, or MinSamples if that lets all through
	PassRetries bool             // retries of an admitted operation are never refused, only counted: as in document 002
	Now         func() time.Time // default time.Now
}

// BreakerState is what a [Breaker] does.
type BreakerState uint8

// The states of a Breaker.
const (
	BreakerClosed   BreakerState = iota // all pass
	BreakerOpen                         // none does
	BreakerHalfOpen                     // a few do
)

func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	default:
		return "half open"
	}
}

// NewBreaker returns a closed Breaker. The error names the option that is wrong.
func NewBreaker(o *BreakerOptions) (*Breaker, error) {
	b := &Breaker{}
	if o != nil {
		b.o = *o
	}
	err := validate(b.o.Window, b.o.Share, b.o.MinSamples)
	switch {
	case err != nil:
		return nil, err
	case b.o.Open < 0:
		return nil, fmt.Errorf("budget: option Open is negative: %v", b.o.Open)
	case b.o.Trials < 0:
		return nil, fmt.Errorf("budget: option Trials is negative: %d", b.o.Trials)
	}
	b.o.defaults()
	b.recent = newWindow(b.o.Window)
	return b, nil
}

func (o *BreakerOptions) defaults() {
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.MinSamples == 0 {
		o.MinSamples = 20
	}
	if o.Share == 0 {
		o.Share = 0.5
	}
	if o.Open == 0 {
		o.Open = 5 * time.Second
	}
	if o.HalfOpen == 0 {
		o.HalfOpen = 3
	}
	if o.Trials == 0 {
		o.Trials = o.HalfOpen
		if o.HalfOpen < 0 {
			o.Trials = o.MinSamples
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// State returns what it does now.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(b.o.Now())
	return b.state
}

// Admit implements [backoff.Budget].
func (b *Breaker) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(b.o.Now())
	passes := last.Class != backoff.ClassOK && b.o.PassRetries
	trial := b.state == BreakerHalfOpen && !passes
	switch {
	case b.state == BreakerOpen && !passes:
		return nil, false
	case trial && b.o.HalfOpen > 0 && (last.Class != backoff.ClassOK || b.under >= b.o.HalfOpen):
		return nil, false
	case trial:
		b.under++
	}
	turn := b.turn
	return func(v backoff.Verdict) { b.done(v, turn, trial) }, true
}

// look changes the state as far as that is a matter of time, or of what has been
// counted.
func (b *Breaker) look(now time.Time) {
	switch b.state {
	case BreakerClosed:
		b.recent.advance(now)
		if seen := b.recent.sum; seen.total >= b.o.MinSamples && seen.share() >= b.o.Share {
			b.open(now)
		}
	case BreakerOpen:
		if now.Sub(b.opened) >= b.o.Open {
			b.enter(BreakerHalfOpen)
		}
	case BreakerHalfOpen:
		if b.trials.total < b.o.Trials {
			return
		}
		if b.trials.share() >= b.o.Share {
			b.open(now)
		} else {
			b.enter(BreakerClosed)
		}
	}
}

func (b *Breaker) open(now time.Time) {
	b.opened = now
	b.enter(BreakerOpen)
}

func (b *Breaker) enter(s BreakerState) {
	b.state, b.trials, b.under = s, tally{}, 0
	b.turn++
	b.recent.clear()
}

// done counts an outcome. One of an earlier state counts only where all are let
// through: who else is judged half open was admitted half open.
func (b *Breaker) done(v backoff.Verdict, turn uint64, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := turn == b.turn
	if current && trial {
		b.under--
	}
	if v.Class == backoff.ClassStop || !current && b.o.HalfOpen > 0 {
		return
	}
	failed := v.Class != backoff.ClassOK
	if b.state != BreakerHalfOpen {
		b.recent.record(b.o.Now(), failed)
		return
	}
	b.trials.total++
	if failed {
		b.trials.failed++
	}
}
