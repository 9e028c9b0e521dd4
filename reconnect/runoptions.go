package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// RunOptions are the options of [Run]. A nil *RunOptions has the defaults. For their functions see Callbacks
// in the package documentation.
type RunOptions struct {
	// Policy says how long to wait before each dial, and how long a dial may take. It is called in the
	// supervisor's goroutine, of which there are two during a [Rotation]. Default: [backoff.Default].
	Policy backoff.Policy

	// Classify returns the verdict on why a dial failed or a session ended. It is called as Policy is,
	// and never with nil. ClassOK counts as ClassRetry. For the waits a hung handshake is ClassOverload.
	// Default: [backoff.Classify].
	Classify func(error) backoff.Verdict

	// OneConnection gives up a handshake that is not answered, instead of dialing concurrently, for
	// accounts that may have one connection only. A server with an unbounded queue that needs more than
	// about 15 s for a herd of such clients may never recover; the policy &backoff.Adaptive{HangShare:
	// 1} is more patient.
	OneConnection bool

	// StartSpread bounds a random wait before the first dial, for many clients that start together.
	// Default, and negative: no wait.
	StartSpread time.Duration

	// StableAfter is how long a session must have been ready so that the waits start again from the
	// first, with the exceptions of promise 3. Default: 10 s. Negative: 2 s.
	StableAfter time.Duration

	// Gate delays each dial, including the first. The time at the gate does not count in the limits on
	// the dial. Acquire is called in its own goroutine, and the returned function in the supervisor's or
	// in that of [Session.Ready].
	Gate Gate

	// Host is the name of the server at the Gate; either is an error without the other. Default for a
	// Conn: what the Dialer's method Host returns.
	//
	// By default a dial may go to another host, because of WebSocket.Prepare or an advised URL. It then
	// releases its slot, without a verdict, and waits for one for that host before it connects: Dial,
	// and so Prepare, is called again after the wait. The next dials wait for that host from the start,
	// unless it was advised. A dial that would then go to a third host releases its slot, and does not
	// wait again.
	Host string

	// Logins is the login budget that the connections of an account share. The first [Opening.Write] of
	// a session takes a login, unless after [Opening.NoLogin]; for a Run, [Session.Login] does. While none
	// is left the next dial waits, which no kick cuts short. A dial that has passed Gate reserves a login
	// before it begins; if it fails, a connection that waits for a login dials immediately. A rotation
	// waits for a login while the old session continues.
	Logins *budget.Logins

	// Kick is like [Conn.Kick] when something can be received from it. A closed channel does nothing. It
	// must be nil for a Conn.
	Kick <-chan struct{}

	// Rand is the source of jitter, which no other part of the program may use meanwhile. Default: the
	// runtime's random numbers.
	Rand rand.Source

	// Name identifies the connection in the events of Trace.
	Name string

	Trace *Trace

	hostOfDialer bool // Host is the default: that of the Dialer

	dials *schedule.DialOptions // what follows from these options

	policyName, classifyName *string // for watch.Calls, or nil if it is the library's own
}

// Gate limits when the connections of a program to one host may dial, such as a budget.Gate.
// Status.Outlook is set only if the Gate has the method Outlook of budget.Gate.
type Gate = backoff.Gate

// acquire waits at the gate of host for the connection called name. Only a *budget.Gate gets the
// name, and the error of the dial. A gate that embeds a budget.Gate does not, because it may have
// an Acquire of its own.
func (o *RunOptions) acquire(ctx context.Context, host, name string) (leave func(backoff.Verdict, error), err error) {
	if g, ok := o.Gate.(*budget.Gate); ok {
		return g.AcquireAs(ctx, host, name)
	}
	done, err := o.Gate.Acquire(ctx, host)
	if err != nil || done == nil {
		return nil, err
	}
	return func(v backoff.Verdict, _ error) { done(v) }, nil
}

// outlook returns what the gate knows of host if it is down, or nil.
func (o *RunOptions) outlook(host string) *budget.Outlook {
	if g, ok := o.Gate.(interface {
		Outlook(host string) *budget.Outlook
	}); ok {
		return g.Outlook(host)
	}
	return nil
}

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
	r.policyName, r.classifyName = &policyName, &classifyName
	if r.Policy == nil {
		r.Policy, r.policyName = backoff.Default(), nil
	}
	if r.Classify == nil {
		r.Classify, r.classifyName = backoff.Classify, nil
	}
	r.StableAfter = cmp.Or(r.StableAfter, 10*time.Second)
	r.Trace = cmp.Or(r.Trace, noTrace)
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
