package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// dial is a dial under way: first its wait at the gate, and then the dial itself.
type dial[C io.Closer] struct {
	which   int
	try     backoff.Attempt
	session *Session // the session that it becomes

	running *xsync.Call // the wait at the gate, or the dial; nil: not begun
	atGate  bool        // which of the two it is
	ended   bool        // finish has noted that it has ended
	start   time.Time   // when it began
	err     error
	conn    C

	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer  // cancels the dial after its limits, unless it is connected
	reached atomic.Int64 // when it was connected; 0: not yet
	told    bool         // s.dials knows that it is connected
	hangs   bool         // its handshake was not answered in time

	host   string      // the host for which it waits at the gate or has a slot there; empty without a gate
	moved  bool        // it has waited at the gate for another host before
	astray atomic.Bool // it goes to a host for which it has not waited
}

// begin begins a dial, or its wait at the gate.
func (d *dialing[C]) begin(a schedule.Action) {
	o := d.s.o
	x := &dial[C]{
		which: a.Which,
		try:   a.Attempt,
		session: &Session{
			Name:   d.s.hooks.name,
			hooks:  d.s.hooks,
			calls:  d.s.calls,
			logins: o.Logins,
		},
	}
	x.ctx, x.cancel = context.WithCancelCause(d.ctx)
	d.dials[a.Which] = x
	d.s.owner.forgetKicks()
	if o.Gate == nil {
		d.dial(x)
		return
	}
	x.host = d.s.host
	d.toGate(x)
}

// toGate lets x wait at the gate for its host.
func (d *dialing[C]) toGate(x *dial[C]) {
	x.atGate, x.running, x.ended, x.start = true, nil, false, time.Now()
	if d.release != nil {
		d.freeLogin()
	}
	d.s.owner.connecting(d.atGate(), x.host)
	call(d.s.calls, &hookNames.GateStart, d.s.hooks.Load().GateStart, GateStart{Name: d.s.hooks.name, Host: x.host})
	x.running = xsync.Go(func() { x.session.leave, x.err = d.s.o.acquire(x.ctx, x.host, d.s.hooks.name) })
}

// dial begins the dial itself, in a goroutine of its own, because a handshake needs much stack.
func (d *dialing[C]) dial(x *dial[C]) {
	x.atGate, x.running, x.ended, x.start = false, nil, false, time.Now()
	d.s.dials.Began(x.which, x.start)
	limit := d.s.owner.limit(x.try)
	x.timer = time.AfterFunc(limit, func() {
		if x.reached.Load() == 0 {
			x.cancel(context.DeadlineExceeded)
		}
	})
	d.s.owner.connecting(d.atGate(), x.host)
	call(d.s.calls, &hookNames.DialStart, d.s.hooks.Load().DialStart, DialStart{
		Name:  d.s.hooks.name,
		Try:   x.try.Number,
		Limit: limit,
	})

	try := x.try
	try.Err = d.err
	try.Accepted = func(header map[string][]string) { x.session.header = header }
	try.Connected = func() {
		x.reached.CompareAndSwap(0, int64(link.Now()))
		select {
		case d.connected <- struct{}{}:
		default: // the event of the other dial is still there, and reached looks at both
		}
	}
	if d.s.o.hostOfDialer {
		try.Host = func(host string) error { return d.goesTo(x, host) }
	}
	try.Handshake = d.s.o.dials.Keep // because s.dials decides when it hangs
	ctx := backoff.WithAttempt(&dialContext{x.ctx, x.start.Add(limit), &x.reached, d.s.o.Logins, d.release}, try)
	x.running = xsync.Go(func() { x.conn, x.err = d.s.owner.dial(ctx) })
}

// dialContext is the context of a dial. It has a deadline until the dial is connected. Then the supervisor
// decides how long the handshake may last.
type dialContext struct {
	context.Context
	deadline time.Time
	reached  *atomic.Int64
	logins   *budget.Logins // Take with this context calls release
	release  func()         // ends the reservation of a login; nil: there is none
}

// Value returns release for the key logins: [budget.Logins.Take] asks for that.
func (c *dialContext) Value(key any) any {
	if key == any(c.logins) && c.logins != nil && c.release != nil {
		return c.release
	}
	return c.Context.Value(key)
}

// Err returns [context.DeadlineExceeded] if a limit of the supervisor has ended the context.
func (c *dialContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	return err
}

// Deadline returns the limit on connecting, unless the dial is connected.
func (c *dialContext) Deadline() (time.Time, bool) {
	if c.reached.Load() != 0 {
		return c.Context.Deadline()
	}
	if deadline, ok := c.Context.Deadline(); ok && deadline.Before(c.deadline) {
		return deadline, true
	}
	return c.deadline, true
}

// cut ends a dial because of cause, waits for it, and returns its error.
func (d *dialing[C]) cut(x *dial[C], cause error) error {
	x.cancel(cause)
	d.awaitEnd(x)
	return d.finish(x)
}

// awaitEnd waits for a dial that was cancelled.
func (d *dialing[C]) awaitEnd(x *dial[C]) {
	outer := d.s.calls.Enter(&watch.Elsewhere)
	d.s.hooks.awaitNamed(d.s.calls, x.running.Done, "dial")
	d.s.calls.Leave(outer)
}

// finish notes that the wait of x at the gate has ended, or its dial, and returns why x has failed, if it
// has. It closes a connection that comes too late. Calls after the first do nothing.
func (d *dialing[C]) finish(x *dial[C]) error {
	if x.ended {
		return x.err
	}
	x.ended, d.last = true, x
	if x.astray.Load() {
		d.leaveAstray(x)
	}
	took, cancelled := time.Since(x.start), x.ctx.Err() != nil
	cause, ours := context.Cause(x.ctx), true // ours: the error is not the dialer's
	switch {
	case !x.running.Returned:
		x.err = xsync.ErrNotReturned
	case x.err == nil && cancelled:
		if !x.atGate {
			d.s.close(x.conn)
		}
		x.err = cause
	case cancelled && errors.Is(x.err, context.Canceled) && !errors.Is(x.err, cause):
		x.err = fmt.Errorf("%w: %w", cause, x.err) // because most dialers do not say which limit has ended the context
	default:
		ours = false
	}
	if x.err != nil {
		x.cancel(nil)
	}
	if x.err != nil || !x.atGate {
		d.dials[x.which] = nil
	}
	d.report(x, took, ours)
	return x.err
}

// drop closes the connection of x, if there is one, and gives its place at the gate back. Nothing is left to do for
// a dial that has failed and was reported to the gate.
func (d *dialing[C]) drop(x *dial[C]) {
	x.cancel(nil)
	if x.err == nil && !x.atGate {
		d.s.close(x.conn)
	}
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
}

// report calls GateDone or DialDone, and puts the name of that step before an error of ours.
func (d *dialing[C]) report(x *dial[C], took time.Duration, ours bool) {
	if x.atGate {
		done := GateDone{Name: d.s.hooks.name, Host: x.host, Took: took, Err: x.err}
		call(d.s.calls, &hookNames.GateDone, d.s.hooks.Load().GateDone, done)
		if x.err != nil {
			x.err = fmt.Errorf("gate %s: %w", x.host, x.err)
		}
		return
	}
	if x.timer != nil { // nil: DialTimeout did not return
		x.timer.Stop()
	}
	if ours {
		x.err = fmt.Errorf("dial: %w", x.err)
	}
	done := DialDone{Name: d.s.hooks.name, Try: x.try.Number, Took: took, Err: x.err}
	call(d.s.calls, &hookNames.DialDone, d.s.hooks.Load().DialDone, done)
}

// movedError is the error of a dial that has waited at the gate for one host and would connect to
// another. The supervisor lets it wait for that host, and dials again.
type movedError struct {
	host    string
	advised bool // host is that of an advised URL, to which only this dial goes
}

func (e *movedError) Error() string {
	return fmt.Sprintf("goes to %s, but has waited at the gate for another host", e.host)
}

// Is reports whether target is [context.Canceled]: the dial was withdrawn, and did not fail.
func (e *movedError) Is(target error) bool { return target == context.Canceled }

// goesTo is backoff.Attempt.Host of x, and runs in the goroutine of x. It returns a *movedError if x has to wait at
// the gate for host. A dial that has moved before, or is connected already, does not wait: it goes astray. Otherwise
// a Prepare that names another host each time would never dial.
func (d *dialing[C]) goesTo(x *dial[C], host string) error {
	host = cmp.Or(host, d.s.o.Host)
	switch {
	case host == x.host:
		return nil
	case !x.moved && x.reached.Load() == 0:
		return &movedError{host: host}
	}
	x.astray.Store(true)
	select {
	case d.connected <- struct{}{}:
	default: // an event is there already: see dial
	}
	return nil
}

// leaveAstray releases the slot of x, which has gone astray, at the gate, without a verdict for either
// host. The next dial waits for the usual host.
func (d *dialing[C]) leaveAstray(x *dial[C]) {
	d.s.host = d.s.o.Host
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
}

// movedTo returns the error of x if it has to wait at the gate for another host, or nil.
func (x *dial[C]) movedTo() *movedError {
	if x.atGate || x.ended || !x.running.Returned || x.ctx.Err() != nil {
		return nil
	}
	m, _ := errors.AsType[*movedError](x.err)
	return m
}

// move lets x wait at the gate for the host to which it goes, and the dials after it too unless
// its URL was advised.
func (d *dialing[C]) move(x *dial[C], to *movedError) {
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
	d.report(x, time.Since(x.start), true)
	x.host, x.moved = to.host, true
	if !to.advised {
		d.s.host = to.host
	}
	d.toGate(x)
}
