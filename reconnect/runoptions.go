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

// RunOptions are the options of [Run]. A nil *RunOptions is fine.
type RunOptions struct {
	// Policy says how long to wait before each dial, and for how long a dial may take. It is called
	// in the supervisor's goroutine, of which there are two during a [Rotation]. For what it may
	// call see Callbacks in the package's documentation. Default: [backoff.Default].
	Policy backoff.Policy

	// Classify returns the verdict on why a dial has failed or a session has ended. It is called as
	// Policy is, and never with nil. ClassOK counts as ClassRetry. For the waits a handshake that
	// hangs is ClassOverload, whatever Classify says. Default: [backoff.Classify].
	Classify func(error) backoff.Verdict

	// OneConnection forbids a second dial beside a handshake that is not answered, for accounts that
	// may have one connection only. The handshake is given up instead. A server whose queue has no
	// bound, and that needs more than about 15 s for a herd of such clients, may never come back; the
	// policy &backoff.Adaptive{HangShare: 1} is more patient. Default: there may be two dials at a
	// time, and the dial that is answered first wins.
	OneConnection bool

	// StartSpread is for many clients that start at one instant: a wait drawn from [0,
	// StartSpread) comes before the first dial of all. Default, and negative: no wait.
	StartSpread time.Duration

	// StableAfter is how long a session must have been ready so that the waits start again from the
	// first; or as long as the wait before the session, with what a server asked for, if that was
	// longer. A shorter session takes 30 s off the counted outage if it was ready for 2 s, and earns
	// nothing if it was ready for less. A session that we end because of what the peer sent, such as
	// a broken frame, counts only after an hour. Default: 10 s. Negative: 2 s.
	StableAfter time.Duration

	// Gate holds each dial until it may begin, the first one too. The time at the gate is outside the
	// limits on the dial. Acquire is called in a goroutine of its own, and the function that it
	// returns in the supervisor's goroutine or in that of [Session.Ready]. For what both may call
	// see Callbacks in the package's documentation. Default: none.
	Gate Gate

	// Host is the name of the server at the Gate. It is an error without a Gate, and so is
	// a Gate without it. Default for a Conn: what the Dialer's method Host returns.
	//
	// By default a dial may go to another host, because of WebSocket.Prepare or an advised URL.
	// Then it gives its place at the gate back, without a verdict, and waits for a place for that
	// host before it connects: Dial, and so Prepare, is called again after the wait. The next dials
	// wait for that host from the start, unless it was advised. A dial that would then go to a
	// third host gives its place back, and does not wait again. See [backoff.Attempt].Host.
	Host string

	// Logins is the budget from which each login takes one, shared by the connections of an account.
	// The first [Opening.Write] of a session takes it, unless [Opening.NoLogin] was called before; for
	// a Run, [Session.Login] does. While none is left the next dial waits, which no kick cuts short;
	// Status.Err and WaitStart.Cause are a [*budget.LoginError] then. Each dial reserves a login before it begins,
	// but behind Gate: other connections cannot get that login. The reservation ends if the dial fails: then a
	// connection that waits for a login dials at once. A rotation needs a login too, and waits for it beside the
	// session that is to be replaced. Default: no limit.
	Logins *budget.Logins

	// Kick does what [Conn.Kick] says when something can be received from it. A closed channel does
	// nothing. It must be nil for a Conn. Default: none.
	Kick <-chan struct{}

	// Rand is the source of jitter. No other part of the program may use it meanwhile. Default: the
	// runtime's random numbers.
	Rand rand.Source

	// Name says in the events of Trace which connection it is. Default: empty.
	Name string

	// Trace has the hooks that observe each step. Default: none.
	Trace *Trace

	hostOfDialer bool // Host is the default: that of the Dialer

	dials *schedule.DialOptions // what follows from these options

	policyName, classifyName *string // for watch.Calls, or nil if it is the library's own
}

// Gate is where the connections of a program to one host wait until they may dial, such as a
// budget.Gate. Status.Outlook is set only if the Gate has a method Outlook as budget.Gate has it.
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
