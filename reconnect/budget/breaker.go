package budget

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Breaker is a circuit breaker. It opens when too many recent attempts have failed, and rejects every attempt
// for a while. Then it is half open: it admits a few attempts at a time, whose outcomes decide whether it
// closes or opens again.
//
// While half open it rejects retries, whose long waits would keep others out.
//
// An attempt that ends with ClassStop is not counted, and releases its slot. A response that no further attempt
// can change, such as a 404 marked as Permanent, counts as a success: [retry.Loop] reports it as ClassOK, and
// so must a program that calls Admit itself.
//
// With a negative Open it is a retry breaker: it never opens, but rejects retries while it would be open or no
// attempt is recent. A [Budget] is the better choice: a retry breaker costs more successes in a partial
// failure, and acts only after a window's worth of storm.
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

// BreakerOptions are the options of [NewBreaker]; nil means the defaults. A negative HalfOpen with PassRetries
// makes the breaker of Isaev's article; Open -1, Share 0.1 and MinSamples 1 its retry breaker.
type BreakerOptions struct {
	Window      time.Duration    // how long an outcome is recent, to a twentieth. Default 10 s
	MinSamples  int              // recent attempts needed to open. Default 20
	Share       float64          // share of failures among them that opens it, from 0 to 1. Default 0.5
	Open        time.Duration    // how long it stays open. Default 5 s. Negative: a retry breaker
	HalfOpen    int              // first attempts admitted at a time when half open. Default 3. Negative: all
	Trials      int              // outcomes that decide when half open. Default: HalfOpen; if negative, MinSamples
	PassRetries bool             // retries are counted but never rejected
	Now         func() time.Time // default time.Now
}

// BreakerState is the state of a [Breaker].
type BreakerState uint8

// The states of a Breaker.
const (
	BreakerClosed   BreakerState = iota // all attempts pass
	BreakerOpen                         // no attempt passes
	BreakerHalfOpen                     // a few attempts pass at a time
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

// NewBreaker returns a closed Breaker, or an error that names the invalid option.
func NewBreaker(o *BreakerOptions) (*Breaker, error) {
	b := &Breaker{}
	if o != nil {
		b.o = *o
	}
	if share := b.o.Share; !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("budget: option Share is %v: want a part of 1", share)
	}
	err := cmp.Or(notNegative("Window", b.o.Window), notNegative("MinSamples", b.o.MinSamples), notNegative("Trials", b.o.Trials))
	if err != nil {
		return nil, err
	}
	b.o.defaults()
	b.recent = newRecent(b.o.Window)
	return b, nil
}

// notNegative returns an error that names an option which is negative.
func notNegative[T int | time.Duration](option string, n T) error {
	if n < 0 {
		return fmt.Errorf("budget: option %s is negative: %v", option, n)
	}
	return nil
}

func (o *BreakerOptions) defaults() {
	o.Window = cmp.Or(o.Window, 10*time.Second)
	o.MinSamples = cmp.Or(o.MinSamples, 20)
	o.Share = cmp.Or(o.Share, 0.5)
	o.Open = cmp.Or(o.Open, 5*time.Second)
	o.HalfOpen = cmp.Or(o.HalfOpen, 3)
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
	retries := last.Class != backoff.ClassOK
	passes := retries && b.o.PassRetries
	trial := b.state == BreakerHalfOpen && !passes
	switch {
	case b.state == BreakerOpen && !passes,
		b.o.Open < 0 && retries && !passes && (b.recent.sum.total == 0 || b.failing()),
		trial && b.o.HalfOpen > 0 && (retries || b.trying >= b.o.HalfOpen):
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
		if b.o.Open >= 0 && b.failing() {
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

// failing reports whether too many of the recent tries have failed.
func (b *Breaker) failing() bool {
	seen := b.recent.sum
	return seen.total >= b.o.MinSamples && seen.share() >= b.o.Share
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
