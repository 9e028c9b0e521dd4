package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// dialling is what a supervisor needs between two sessions: the dials that are under
// way, of which there are at most two, and the wait for the next.
type dialling[C io.Closer] struct {
	s   *supervisor[C]
	ctx context.Context

	dials     [2]*dial[C]   // nil: not under way
	connected chan struct{} // has room for the news that a dial is connected
	timer     *time.Timer   // for Action.At; nil: not needed yet
	err       error         // why the last dial or session ended
	won       *dial[C]      // the one that brought a connection
	taken     bool          // which was handed on

	waiting bool // nothing but a wait is under way
	wait    Wait
	since   time.Time // when that began
}

// dial is a dial that is under way: the wait at the gate, and then the dial itself.
type dial[C io.Closer] struct {
	which   int
	try     backoff.Try
	session *Session // that it becomes

	running *xsync.Call // at the gate, or the dial; nil: not yet
	atGate  bool
	ended   bool      // and so noted
	start   time.Time // of that
	err     error
	conn    C

	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer  // cancels it after its limits, unless it is connected
	reached atomic.Int64 // when it was connected; 0: not yet
	told    bool         // and the rule knows
	hangs   bool         // its handshake was not answered in time
}

// connect dials until a dial brings a connection. It returns an error if ctx ends, or
// if no further dial follows.
func (s *supervisor[C]) connect(ctx context.Context) (c C, session *Session, err error) {
	d := &dialling[C]{s: s, ctx: ctx, connected: make(chan struct{}, 1), err: s.err}
	defer d.end()
	if s.err != nil || s.o.StartSpread > 0 {
		d.pause()
	}
	for {
		switch a := s.dials.Next(time.Now()); a.Do {
		case backoff.Dial:
			d.resume(a.Kicked)
			d.begin(a)
		case backoff.Keep:
			d.keep(d.dials[a.Which], a.Kicked)
		case backoff.Cut:
			d.giveUp(d.dials[a.Which])
		case backoff.Stop:
			return c, nil, d.stopped()
		case backoff.Wait:
			if d.won != nil {
				d.taken = true
				return d.won.conn, d.won.session, nil
			}
			if err := d.await(a.At); err != nil {
				return c, nil, err
			}
		}
	}
}

// stopped returns why no further dial follows.
func (d *dialling[C]) stopped() error {
	if d.s.dials.GaveUp() {
		return fmt.Errorf("%w after %d tries: %w", backoff.ErrGaveUp, d.s.dials.Tries(), d.err)
	}
	return d.err
}

// begin begins a dial, or its wait at the gate.
func (d *dialling[C]) begin(a backoff.Action) {
	o := d.s.o
	x := &dial[C]{which: a.Which, try: a.Try, session: &Session{Name: o.Name, trace: o.Trace}}
	x.ctx, x.cancel = context.WithCancelCause(d.ctx)
	d.dials[a.Which] = x
	d.s.owner.forgetKicks()
	if o.Gate == nil {
		d.dial(x)
		return
	}
	x.atGate, x.start = true, time.Now()
	d.s.owner.connecting(d.atGate())
	call(o.Trace.GateStart, GateStart{Name: o.Name, Host: o.Host})
	x.running = xsync.Go(func() {
		leave, err := o.Gate.Acquire(x.ctx, o.Host)
		if err == nil {
			x.session.enterGate(leave)
		}
		x.err = err
	})
}

// atGate reports whether all dials under way wait at the gate.
func (d *dialling[C]) atGate() bool {
	for _, x := range d.dials {
		if x != nil && !x.atGate {
			return false
		}
	}
	return true
}

// dial begins the dial itself, in a goroutine of its own, since a handshake needs much
// stack.
func (d *dialling[C]) dial(x *dial[C]) {
	x.atGate, x.running, x.ended, x.start = false, nil, false, time.Now()
	limit := d.s.owner.limit(x.try)
	x.timer = time.AfterFunc(limit, func() {
		if x.reached.Load() == 0 {
			x.cancel(context.DeadlineExceeded)
		}
	})
	d.s.owner.connecting(d.atGate())
	call(d.s.o.Trace.DialStart, DialStart{Name: d.s.o.Name, Try: x.try.N, Limit: limit})

	try := x.try
	try.Connected = func() {
		x.reached.CompareAndSwap(0, int64(now()))
		select {
		case d.connected <- struct{}{}:
		default: // it is known that there is news
		}
	}
	try.Handshake = d.s.o.dials.Keep // the rule knows when it hangs
	ctx := backoff.WithTry(&dialContext{x.ctx, x.start.Add(limit), &x.reached}, try)
	x.running = xsync.Go(func() { x.conn, x.err = d.s.owner.dial(ctx) })
}

// dialContext is the context of a dial. It has a deadline until the dial is connected;
// then the supervisor decides how long its handshake may last.
type dialContext struct {
	context.Context
	deadline time.Time
	reached  *atomic.Int64
}

// Err returns [context.DeadlineExceeded] where a limit of the supervisor's has ended it.
func (c *dialContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	return err
}

func (c *dialContext) Deadline() (time.Time, bool) {
	if c.reached.Load() != 0 {
		return c.Context.Deadline()
	}
	if deadline, ok := c.Context.Deadline(); ok && deadline.Before(c.deadline) {
		return deadline, true
	}
	return c.deadline, true
}

// keep lets a dial go on whose handshake hangs, or beside which a kick begins another,
// and gives its place at the gate back.
func (d *dialling[C]) keep(x *dial[C], kicked bool) {
	if kicked {
		x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop})
		return
	}
	x.hangs = true
	d.judge(x, fmt.Errorf("dial: %w", backoff.ErrHung))
	d.publish()
	x.session.leaveGate(d.s.gateVerdict(d.ctx))
	call(d.s.o.Trace.DialHung, DialHung{Name: d.s.o.Name, Try: x.try.N, Since: now() - instant(x.reached.Load())})
}

// judge notes why a dial has failed, or hangs.
func (d *dialling[C]) judge(x *dial[C], err error) {
	d.err = err
	xsync.Guard(func() { d.s.verdict = d.s.o.classify(err) },
		func() { x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}) })
}

// errAnswered is why a dial was cut that was not the first to be answered.
var errAnswered = errors.New("another dial was answered first")

// errStopped is why a dial was cut beside which another has failed for good.
var errStopped = errors.New("another dial has failed for good")

// giveUp ends a dial because the rule says so.
func (d *dialling[C]) giveUp(x *dial[C]) {
	switch {
	case x.hangs:
		d.cut(x, backoff.ErrHung)
	case d.won != nil:
		d.cut(x, errAnswered)
	case d.s.dials.Stopped():
		d.cut(x, errStopped)
	default:
		err := d.cut(x, backoff.ErrHung)
		d.judge(x, err)
		x.session.leaveGate(d.s.gateVerdict(d.ctx))
		d.s.owner.failed()
		d.publish()
	}
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop})
	d.pause()
}

// cut ends a dial because of cause, waits for it, and returns its error.
func (d *dialling[C]) cut(x *dial[C], cause error) error {
	x.cancel(cause)
	d.awaitEnd(x)
	return d.finish(x)
}

// awaitEnd waits for a dial that was cancelled.
func (d *dialling[C]) awaitEnd(x *dial[C]) {
	d.s.o.Trace.waitFor(x.running.Done(), d.s.o.Name, func() string { return "dial" })
}

// finish notes that what x was doing has ended, and returns why x has failed, nil if it
// has not. A connection that comes too late is closed.
func (d *dialling[C]) finish(x *dial[C]) error {
	if x.ended { // and a hook did not return
		return x.err
	}
	x.ended = true
	took, cancelled := time.Since(x.start), x.ctx.Err() != nil
	cause, ours := context.Cause(x.ctx), true // our error, or the dial's
	switch {
	case !x.running.Returned():
		x.err = errNotReturned
	case x.err == nil && cancelled:
		if !x.atGate {
			x.conn.Close()
		}
		x.err = cause
	case cancelled && errors.Is(x.err, context.Canceled) && !errors.Is(x.err, cause):
		x.err = fmt.Errorf("%w: %w", cause, x.err) // of a limit most dialers say only that the context has ended
	default:
		ours = false
	}
	if x.err != nil {
		x.cancel(nil)
	}
	if x.err != nil || !x.atGate {
		d.dials[x.which] = nil
	}
	xsync.Guard(func() { d.report(x, took, ours) }, func() { d.drop(x) })
	return x.err
}

// drop gives up what x has brought.
func (d *dialling[C]) drop(x *dial[C]) {
	x.cancel(nil)
	if x.err == nil && !x.atGate {
		x.conn.Close()
	}
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop})
}

// report calls the hook for what x was doing, and puts the name of that before an error
// of ours.
func (d *dialling[C]) report(x *dial[C], took time.Duration, ours bool) {
	o := d.s.o
	if x.atGate {
		call(o.Trace.GateDone, GateDone{Name: o.Name, Host: o.Host, Took: took, Err: x.err})
		if x.err != nil {
			x.err = fmt.Errorf("gate %s: %w", o.Host, x.err)
		}
		return
	}
	if x.timer != nil { // nil: Patience did not return
		x.timer.Stop()
	}
	if ours {
		x.err = fmt.Errorf("dial: %w", x.err)
	}
	call(o.Trace.DialDone, DialDone{Name: o.Name, Try: x.try.N, Took: took, Err: x.err})
}

// await waits until the time is at, if that is not zero, or until something happens,
// which it reports to the rule. The error is that of ctx.
func (d *dialling[C]) await(at time.Time) error {
	var due <-chan time.Time
	if !at.IsZero() {
		if wait := time.Until(at); d.timer == nil {
			d.timer = time.NewTimer(wait)
		} else {
			d.timer.Reset(wait)
		}
		defer d.timer.Stop()
		due = d.timer.C
	}
	select {
	case <-d.ended(0):
		d.ready(d.dials[0])
	case <-d.ended(1):
		d.ready(d.dials[1])
	case <-d.cancelled(0):
		d.late(d.dials[0])
	case <-d.cancelled(1):
		d.late(d.dials[1])
	case <-d.connected:
		d.reached()
	case <-due:
	case _, open := <-d.s.owner.kick():
		if d.s.owner.took(open) {
			d.kick()
		}
	case <-d.ctx.Done():
	}
	return context.Cause(d.ctx)
}

// ended returns what is closed when what a dial is doing has ended; nil without one.
func (d *dialling[C]) ended(which int) <-chan struct{} {
	if x := d.dials[which]; x != nil {
		return x.running.Done()
	}
	return nil
}

// cancelled returns what is closed when a dial must end; nil without one.
func (d *dialling[C]) cancelled(which int) <-chan struct{} {
	if x := d.dials[which]; x != nil {
		return x.ctx.Done()
	}
	return nil
}

// late waits for a dial whose time is over, unless everything is.
func (d *dialling[C]) late(x *dial[C]) {
	if d.ctx.Err() == nil {
		d.awaitEnd(x)
		d.ready(x)
	}
}

// reached tells the rule which dials are connected.
func (d *dialling[C]) reached() {
	for _, x := range d.dials {
		if x != nil && !x.told && x.reached.Load() != 0 {
			x.told = true
			x.timer.Stop()
			d.s.dials.Connected(x.which, epoch.Add(time.Duration(x.reached.Load())))
		}
	}
}

// kick passes a kick on, unless a dial waits at the gate.
func (d *dialling[C]) kick() {
	for _, x := range d.dials {
		if x != nil && x.atGate {
			return
		}
	}
	d.s.dials.Kick(time.Now())
}

// ready notes that what x was doing has ended.
func (d *dialling[C]) ready(x *dial[C]) {
	err := d.finish(x)
	switch {
	case err != nil:
		d.failed(x, err)
	case x.atGate:
		d.dial(x)
	default:
		d.won = x
		d.s.dials.Answered(x.which, time.Now())
	}
}

// failed judges a dial that has failed.
func (d *dialling[C]) failed(x *dial[C], err error) {
	d.judge(x, err)
	x.session.leaveGate(d.s.gateVerdict(d.ctx))
	if !x.atGate {
		d.s.owner.failed()
	}
	d.s.dials.Failed(x.which, d.s.verdict, time.Now())
	d.publish()
	d.pause()
}

// idle reports whether no dial is under way.
func (d *dialling[C]) idle() bool { return d.dials[0] == nil && d.dials[1] == nil }

// publish says what has gone wrong while another dial goes on.
func (d *dialling[C]) publish() {
	if !d.idle() && d.won == nil {
		d.s.owner.troubled(d.atGate(), d.s.dials.Tries(), d.err, d.s.verdict.Class)
	}
}

// pause begins a wait, unless a dial is under way.
func (d *dialling[C]) pause() {
	if !d.idle() || d.won != nil || d.ctx.Err() != nil || d.s.dials.Stopped() {
		return
	}
	d.since = time.Now()
	verdict := d.s.dials.Attempt().Verdict
	d.waiting, d.wait = true, Wait{
		Name: d.s.o.Name, Try: d.s.dials.Tries(), Cause: d.err, Verdict: verdict,
		Drawn: max(d.s.dials.Due().Sub(d.since)-verdict.RetryAfter, 0),
	}
	d.s.owner.waiting(d.wait, d.s.verdict.Class)
	call(d.s.o.Trace.WaitStart, d.wait)
}

// resume ends a wait.
func (d *dialling[C]) resume(kicked bool) {
	if !d.waiting {
		return
	}
	d.waiting = false
	call(d.s.o.Trace.WaitDone, WaitDone{Name: d.wait.Name, Try: d.wait.Try, Took: time.Since(d.since), Kicked: kicked})
}

// end ends all that is under way. It does so also if a hook does not return.
func (d *dialling[C]) end() {
	defer func() {
		if d.won != nil && !d.taken {
			d.drop(d.won)
		} else if d.won != nil {
			d.won.cancel(nil)
		}
	}()
	for _, x := range d.dials {
		if x != nil {
			x.cancel(context.Cause(d.ctx))
			defer d.endDial(x)
		}
	}
	d.resume(false)
}

func (d *dialling[C]) endDial(x *dial[C]) {
	defer x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop})
	if x.running == nil { // a hook did not return
		x.running = xsync.Go(func() { x.err = errNotReturned })
	}
	d.cut(x, context.Cause(d.ctx))
}
