package reconnect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// RunOptions are the options of [Run]. A nil *RunOptions is fine.
type RunOptions struct {
	// Policy draws the waits and limits. Default: [backoff.Default].
	Policy backoff.Policy

	// Classify judges why a dial or a session ended. It is called in the
	// supervisor's goroutine, never with nil. A handshake that hangs counts as
	// ClassOverload for the waits, whatever it says. Default: [backoff.Classify].
	Classify func(error) backoff.Verdict

	// OneConnection forbids a second dial beside one whose handshake is not answered,
	// for accounts that may have one connection only: such a handshake is given up
	// then. A herd of more than some thousand such clients may keep a server with an
	// unbounded queue from coming back: &backoff.Prompt{HangShare: 1} is more patient.
	// Default: there may be two dials at a time, and the one that is answered first
	// wins.
	OneConnection bool

	// StartSpread is for many clients that start at one instant: the first dial of all
	// waits for a time drawn from [0, StartSpread). Default, and negative: no wait.
	StartSpread time.Duration

	// StableAfter is how long a session must have been ready for the waits to
	// start again from the first. The wait before it counts as well, with what a
	// server asked for, if it was longer. A shorter session makes the outage younger by
	// four times the time that it was ready. Default: 10 s. Negative: ready at all is
	// enough, unless that wait was longer.
	StableAfter time.Duration

	// Gate admits each dial, under the name Host, the first one included.
	// Default: none. The time spent at it is outside the limits of the try.
	Gate Gate
	Host string

	// Kick cuts the present wait short when something can be received from it. It
	// never cuts a server's Retry-After or a wait at the gate. A kick that comes
	// during a dial begins another beside it at once; if that may not be, it cuts the
	// wait after the dial, if that fails. One that comes while a session lasts is
	// forgotten. A closed channel kicks nobody. Default: none.
	Kick <-chan struct{}

	// Rand is where jitter comes from; it must be this Run's alone. Default: the
	// runtime's random numbers.
	Rand rand.Source

	// Name says in the events of Trace which connection it is. Default: nothing.
	Name string

	// Trace observes. Default: nothing.
	Trace *Trace

	dials *backoff.DialOptions // what follows from these options
}

// Gate is where the connections to one host wait for leave to dial. A
// budget.Gate is one.
type Gate = backoff.Gate

func (o *RunOptions) withDefaults() (*RunOptions, error) {
	r := RunOptions{}
	if o != nil {
		r = *o
	}
	if r.Policy == nil {
		r.Policy = backoff.Default()
	}
	if r.Classify == nil {
		r.Classify = backoff.Classify
	}
	if r.StableAfter == 0 {
		r.StableAfter = 10 * time.Second
	}
	if r.Trace == nil {
		r.Trace = noTrace
	}
	if r.Host != "" && r.Gate == nil {
		return nil, fmt.Errorf("reconnect: RunOptions.Host %q without a Gate", r.Host)
	}
	if r.Gate != nil && r.Host == "" {
		return nil, errors.New("reconnect: RunOptions.Gate needs a Host")
	}
	r.dials = (&backoff.DialOptions{
		Policy: r.Policy, OneConnection: r.OneConnection, StartSpread: r.StartSpread, StableAfter: r.StableAfter,
	}).WithDefaults()
	return &r, nil
}

func (o *RunOptions) random() *rand.Rand {
	if o.Rand == nil {
		return backoff.Rand()
	}
	return rand.New(o.Rand) // has no state of its own
}

// classify is Classify, made total: an error is never a success.
func (o *RunOptions) classify(err error) backoff.Verdict {
	v := o.Classify(err)
	if v.Class == backoff.ClassOK {
		v.Class = backoff.ClassRetry
	}
	v.RetryAfter = min(max(v.RetryAfter, 0), backoff.MaxRetryAfter)
	return v
}
