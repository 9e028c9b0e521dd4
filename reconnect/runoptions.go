package reconnect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// RunOptions are the options of [Run]. A nil *RunOptions is fine.
type RunOptions struct {
	// Policy says how long to wait before each dial, and for how long a dial may take. It
	// is called in the supervisor's goroutine. While a Conn replaces a session there are two
	// supervisors: see [Rotation]. Default: [backoff.Default].
	Policy backoff.Policy

	// Classify is the verdict on why a dial has failed or a session has ended. It is
	// called in the supervisor's goroutine, as Policy is, and never with nil. ClassOK from it counts
	// as ClassRetry. For the waits a handshake that hangs is ClassOverload, whatever
	// Classify says. Default: [backoff.Classify].
	Classify func(error) backoff.Verdict

	// OneConnection forbids a second dial beside one whose handshake is not answered, for
	// accounts that may have one connection only. Such a handshake is given up instead.
	// A server whose queue has no bound, and that needs more than about 15 s for a herd of
	// such clients, may never come back; the policy &backoff.Adaptive{HangShare: 1} is more
	// patient.
	// Default: there may be two dials at a time, and the one that is answered first
	// wins.
	OneConnection bool

	// StartSpread is for many clients that start at one instant: a wait drawn from [0,
	// StartSpread) comes before the first dial of all. Default, and negative: no wait.
	StartSpread time.Duration

	// StableAfter is how long a session must have been ready so that the waits start
	// again from the first. If the wait before the session, with what a server asked
	// for, was longer, the session must have been ready for that long. A shorter session
	// that was ready for 2 s makes the outage 30 s younger. One that was ready for less than
	// 2 s earns nothing, unless StableAfter is shorter. A session that we end because of what the
	// peer sent, such as a broken frame, counts only after an hour. Default: 10 s. Negative: 2 s.
	StableAfter time.Duration

	// Gate holds each dial until it may begin, the first one too. Its Acquire is called in
	// a goroutine of its own, and what that returns in the supervisor's goroutine or in
	// the one that calls [Session.Ready]. The time at the gate is outside the limits on
	// the dial. Default: none.
	Gate Gate

	// Host is the name of the server at the Gate. It is an error without a Gate, and so is
	// a Gate without it. Default for a Conn: what the Dialer's method Host returns.
	Host string

	// Kick cuts the present wait short when something can be received from it. It never
	// cuts the time that a server told us to wait, nor the wait at the gate. A kick during
	// a dial begins another one beside it at once. If there may be no other, it cuts the
	// wait after the dial instead, if the dial fails. A kick during a session does
	// nothing, and so does a closed channel. It must be nil for a Conn, which has a
	// method for it. Default: none.
	Kick <-chan struct{}

	// Rand is the source of jitter. One goroutine at a time uses it: no other part of the
	// program may. Default: the runtime's random numbers.
	Rand rand.Source

	// Name says in the events of Trace which connection it is. Default: empty.
	Name string

	// Trace has the hooks that observe each step. Default: none.
	Trace *Trace

	dials *schedule.DialOptions // what follows from these options
}

// Gate is where the connections of a program to one host wait until they may dial, such as a
// budget.Gate.
type Gate = backoff.Gate

// defaultRun are the RunOptions of all that leave them alone.
var defaultRun, _ = new(RunOptions).complete()

// withDefaults returns o with the default in the place of each field that is zero. The
// caller must not change it. A nil o has all the defaults.
func (o *RunOptions) withDefaults() (*RunOptions, error) {
	if o == nil || reflect.ValueOf(o).Elem().IsZero() {
		return defaultRun, nil
	}
	return o.complete()
}

// complete returns a copy of o with the default in the place of each field that is zero.
func (o *RunOptions) complete() (*RunOptions, error) {
	r := *o
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
	r.dials = (&schedule.DialOptions{
		Policy: r.Policy, OneConnection: r.OneConnection, StartSpread: r.StartSpread, StableAfter: r.StableAfter,
	}).WithDefaults()
	return &r, nil
}

// lockedSource is a source that several goroutines may use.
type lockedSource struct {
	mu     sync.Mutex // guards source
	source rand.Source
}

// Uint64 returns the next number.
func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

func (o *RunOptions) random() *rand.Rand {
	if o.Rand == nil {
		return backoff.Rand()
	}
	return rand.New(o.Rand) // which has no state of its own
}

// classify calls Classify, and makes it total: an error is never ClassOK, and RetryAfter is
// within its bounds.
func (o *RunOptions) classify(err error) backoff.Verdict {
	v := o.Classify(err)
	if v.Class == backoff.ClassOK {
		v.Class = backoff.ClassRetry
	}
	return v.Bounded()
}
