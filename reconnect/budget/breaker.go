package budget

import (
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Breaker is a circuit breaker (Michael T. Nygard, "Release It!"). It opens when too
// many of the recent tries have failed, and refuses every try for a while. Then it is
// half open: it lets a few tries through at a time, and their outcomes decide whether
// it closes or opens again.
//
// While half open it bounds the tries under way, not the results that are in,
// because a breaker that lets all traffic pass until it has results lets a storm pass.
// Retries do not pass then, because they are admitted before their wait: three that wait
// for an hour would keep all others out for that hour.
//
// A try that ends with ClassStop is not counted, whether it was begun or not. If it was
// admitted half open, its place is free again.
//
// It is a [retry.Budget], and safe for concurrent use.
type Breaker struct {
	o BreakerOptions

	mu         sync.Mutex // guards what follows
	state      BreakerState
	generation uint64    // counts changes of state, so that a try knows whether it was admitted in this one
	opened     time.Time // when it opened last
	recent     recent    // outcomes while closed
	trials     outcomes  // outcomes while half open
	trying     int       // tries under way that were admitted half open
}

// BreakerOptions are the options of [NewBreaker]; nil means the defaults. With a
// negative HalfOpen and with PassRetries it is the breaker of Denis Isaev, "Good Retry,
// Bad Retry: An Incident Story".
type BreakerOptions struct {
	Window      time.Duration    // how long an outcome counts as recent, to a twentieth. Default 10 s
	MinSamples  int              // how many recent tries it takes to open. Default 20
	Share       float64          // the share of failures among them at which it opens, from 0 to 1. Default 0.5
	Open        time.Duration    // how long it stays open. Default 5 s
	HalfOpen    int              // how many first tries it lets through at a time when half open. Default 3. Negative: all
	Trials      int              // how many outcomes decide then. Default: HalfOpen, or MinSamples if that lets all through
	PassRetries bool             // retries are counted and never refused, because their operation was admitted
	Now         func() time.Time // default time.Now
}

// BreakerState is the state of a [Breaker].
type BreakerState uint8

// The states of a Breaker.
const (
	BreakerClosed   BreakerState = iota // all tries pass
	BreakerOpen                         // no try passes
	BreakerHalfOpen                     // a few tries pass at a time
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
	b.recent = newRecent(b.o.Window)
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

// State returns the current state.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(b.o.Now())
	return b.state
}

// Admit implements [retry.Budget].
func (b *Breaker) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look(b.o.Now())
	passes := last.Class != backoff.ClassOK && b.o.PassRetries
	trial := b.state == BreakerHalfOpen && !passes
	switch {
	case b.state == BreakerOpen && !passes:
		return nil, false
	case trial && b.o.HalfOpen > 0 && (last.Class != backoff.ClassOK || b.trying >= b.o.HalfOpen):
		return nil, false
	case trial:
		b.trying++
	}
	turn := b.generation
	return func(v backoff.Verdict) { b.done(v, turn, trial) }, true
}

// look changes the state if its time is over, or if there are enough outcomes.
func (b *Breaker) look(now time.Time) {
	switch b.state {
	case BreakerClosed:
		b.recent.advance(now)
		if seen := b.recent.sum; seen.total >= b.o.MinSamples && seen.share() >= b.o.Share {
			b.open(now)
		}
	case BreakerOpen:
		if now.Sub(b.opened) >= b.o.Open {
			b.setState(BreakerHalfOpen)
		}
	case BreakerHalfOpen:
		if b.trials.total < b.o.Trials {
			return
		}
		if b.trials.share() >= b.o.Share {
			b.open(now)
		} else {
			b.setState(BreakerClosed)
		}
	}
}

func (b *Breaker) open(now time.Time) {
	b.opened = now
	b.setState(BreakerOpen)
}

func (b *Breaker) setState(s BreakerState) {
	b.state, b.trials, b.trying = s, outcomes{}, 0
	b.generation++
	b.recent.clear()
}

// done counts an outcome. An outcome of an earlier state is ignored, unless HalfOpen is
// negative: only trials that were admitted half open decide whether the breaker closes.
func (b *Breaker) done(v backoff.Verdict, turn uint64, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := turn == b.generation
	if current && trial {
		b.trying--
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
