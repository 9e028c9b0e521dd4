package reconnect

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// dialing is the state of a supervisor between two sessions: the dials under way, of which
// there are at most two, and the wait for the next.
type dialing[C io.Closer] struct {
	s   *supervisor[C]
	ctx context.Context

	dials     [2]*dial[C]   // nil: not under way
	connected chan struct{} // a dial is connected; has room for one such event
	timer     *time.Timer   // for Action.At; nil: not needed yet
	err       error         // why the last dial failed or the last session ended
	last      *dial[C]      // the last one that has ended, or nil
	won       *dial[C]      // the dial that brought a connection
	taken     bool          // the connection was returned by connect

	release func() // ends the reservation of a login; nil: there is none
	keeps   bool   // also at the gate, because a session that was well was closed for it

	waiting bool // nothing but a wait is under way
	wait    WaitStart
	since   time.Time // when the wait began
	until   time.Time // when it ends
}

// connect dials until a dial brings a connection. It returns an error if ctx ends, or
// if no further dial follows.
func (s *supervisor[C]) connect(ctx context.Context) (c C, session *Session, err error) {
	ctx, release := xsync.Child(ctx)
	defer release()
	d := &dialing[C]{s: s, ctx: ctx, connected: make(chan struct{}, 1), err: s.cause, release: s.login}
	d.keeps, s.login = d.release != nil, nil
	defer d.end()
	if s.cause != nil || s.o.StartSpread > 0 {
		d.pause()
	}
	for d.won == nil || !d.idle() {
		now := time.Now()
		if s.o.Logins != nil {
			if waited, err := d.awaitLogin(now); err != nil {
				return c, nil, err
			} else if waited {
				continue
			}
		}
		outer := s.calls.Enter(s.o.policyName)
		a := s.dials.Next(now)
		s.calls.Leave(outer)
		switch a.Do {
		case schedule.DoDial:
			d.resume(a.Kicked)
			d.begin(a)
		case schedule.DoKeep:
			d.keep(d.dials[a.Which], a.Kicked)
		case schedule.DoCut:
			d.giveUp(d.dials[a.Which])
		case schedule.DoStop:
			return c, nil, d.stopped()
		case schedule.DoWait:
			if err := d.await(a.At, nil); err != nil {
				return c, nil, err
			}
		}
	}
	d.taken = true
	d.won.session.release, d.release = d.release, nil
	return d.won.conn, d.won.session, nil
}

// stopped returns why no further dial follows.
func (d *dialing[C]) stopped() error {
	if d.s.dials.GaveUp() {
		return fmt.Errorf("%w after %d tries: %w", backoff.ErrGaveUp, d.s.dials.Attempts(), d.err)
	}
	return d.err
}

// atGate reports whether all dials under way wait at the gate.
func (d *dialing[C]) atGate() bool {
	for _, x := range d.dials {
		if x != nil && !x.atGate {
			return false
		}
	}
	return true
}

// keep lets a dial go on whose handshake hangs, or beside which a kick begins another, and gives its place
// at the gate back.
func (d *dialing[C]) keep(x *dial[C], kicked bool) {
	if kicked {
		x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
		return
	}
	x.hangs = true
	d.judge(fmt.Errorf("dial: %w", backoff.ErrHung))
	d.publish()
	x.session.leaveGate(d.gateVerdict(), d.err)
	call(d.s.calls, &hookNames.DialHung, d.s.hooks.Load().DialHung, DialHung{
		Name:  d.s.hooks.name,
		Try:   x.try.Number,
		Since: link.Now() - link.Instant(x.reached.Load()),
	})
}

// judge classifies why a dial has failed, or that it hangs.
func (d *dialing[C]) judge(err error) {
	d.err, d.s.again = err, false
	d.s.verdict = d.s.judge(err)
}

// gateVerdict returns the verdict on a dial for the gate. It is ClassStop, which says nothing about the
// host, if d.ctx ended the dial, or our own machine failed.
func (d *dialing[C]) gateVerdict() backoff.Verdict {
	if d.ctx.Err() != nil {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	return d.s.verdict.OfServer()
}

// These are the causes of cutting a dial that has not failed.
var (
	errAnswered = fmt.Errorf("%w, because another dial was answered first", context.Canceled)
	errStopped  = fmt.Errorf("%w, because another dial has failed for good", context.Canceled)
	errHeld     = fmt.Errorf("%w, because the server has told another dial to wait", context.Canceled) // this one was at the gate
)

// giveUp ends a dial because s.dials says so.
func (d *dialing[C]) giveUp(x *dial[C]) {
	switch {
	case x.hangs:
		d.cut(x, backoff.ErrHung)
	case d.won != nil:
		d.cut(x, errAnswered)
	case d.s.dials.Stopped():
		d.cut(x, errStopped)
	default:
		err := d.cut(x, backoff.ErrHung)
		d.judge(err)
		x.session.leaveGate(d.gateVerdict(), d.err)
		d.s.owner.attemptFailed()
		d.publish()
	}
	x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
	d.freeLogin()
	d.pause()
}

// await waits until something happens, and reports that to s.dials. It also ends at the time at, unless that is
// zero, and when freed is closed. The error is the cause of d.ctx.
func (d *dialing[C]) await(at time.Time, freed <-chan struct{}) error {
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
	var ended, cancelled [2]<-chan struct{} // when the present part of a dial has ended, and when it must end
	for i, x := range d.dials {
		if x != nil {
			ended[i], cancelled[i] = x.running.Done, x.ctx.Done()
		}
	}
	select {
	case <-ended[0]:
		d.ended(d.dials[0])
	case <-ended[1]:
		d.ended(d.dials[1])
	case <-cancelled[0]:
		d.late(d.dials[0])
	case <-cancelled[1]:
		d.late(d.dials[1])
	case <-d.connected:
		d.reached()
	case <-due:
	case <-freed:
	case _, open := <-d.s.owner.kick():
		if d.s.owner.took(open) {
			d.kick()
		}
	case <-d.ctx.Done():
	}
	return context.Cause(d.ctx)
}

// late waits for a dial whose time is over, unless d.ctx has ended.
func (d *dialing[C]) late(x *dial[C]) {
	if d.ctx.Err() == nil {
		d.awaitEnd(x)
		d.ended(x)
	}
}

// reached reports to s.dials which dials are connected.
func (d *dialing[C]) reached() {
	for _, x := range d.dials {
		if x == nil {
			continue
		}
		if x.astray.Load() {
			d.leaveAstray(x)
		}
		if !x.told && x.reached.Load() != 0 {
			x.told = true
			x.timer.Stop()
			d.s.dials.Connected(x.which, link.Time(link.Instant(x.reached.Load())))
		}
	}
}

// kick passes a kick on, unless a dial waits at the gate.
func (d *dialing[C]) kick() {
	for _, x := range d.dials {
		if x != nil && x.atGate {
			return
		}
	}
	d.s.dials.Kick(time.Now())
}

// ended notes that the wait of x at the gate has ended, or its dial.
func (d *dialing[C]) ended(x *dial[C]) {
	if d.s.o.hostOfDialer {
		if to := x.movedTo(); to != nil {
			d.move(x, to)
			return
		}
	}
	err := d.finish(x)
	switch {
	case err != nil:
		d.dialFailed(x, err)
	case !x.atGate:
		d.won = x
		d.s.dials.Answered(x.which, time.Now())
	default:
		if d.s.o.Logins != nil {
			if short, _ := d.reserve(); short != nil { // others have reserved the logins meanwhile
				d.dials[x.which] = nil
				d.drop(x)
				d.s.dials.Withdrawn(x.which, time.Now())
				return
			}
		}
		d.dial(x)
	}
}

// dialFailed classifies why a dial has failed, and reports that to s.dials.
func (d *dialing[C]) dialFailed(x *dial[C], err error) {
	at := time.Now() // functions of the user may block from here on
	d.judge(err)
	x.session.leaveGate(d.gateVerdict(), d.err)
	if !x.atGate {
		d.s.owner.attemptFailed()
	}
	if d.s.verdict.RetryAfter > 0 {
		d.withdraw()
	}
	outer := d.s.calls.Enter(d.s.o.policyName)
	d.s.dials.Failed(x.which, d.s.verdict, at)
	d.s.calls.Leave(outer)
	d.publish()
	d.freeLogin()
	d.pause()
}

// withdraw takes back what waits at the gate.
func (d *dialing[C]) withdraw() {
	for _, x := range d.dials {
		if x != nil && x.atGate {
			d.cut(x, errHeld)
			x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil) // it may have been let in just now
			d.s.dials.Withdrawn(x.which, time.Now())
		}
	}
}

// idle reports whether no dial is under way.
func (d *dialing[C]) idle() bool { return d.dials[0] == nil && d.dials[1] == nil }

// publish shows in the status what has gone wrong while another dial goes on.
func (d *dialing[C]) publish() {
	if !d.idle() && d.won == nil {
		d.s.owner.troubled(d.atGate(), d.s.dials.Attempts(), d.err, unlessLenient(d.s.verdict))
	}
}

// unlessLenient returns the class of v, or ClassRetry instead of ClassSlow if v is Lenient: only
// the next wait decides whether such a verdict is slow. See [schedule.Outage.Next].
func unlessLenient(v backoff.Verdict) backoff.Class {
	if v.Class == backoff.ClassSlow && v.Lenient {
		return backoff.ClassRetry
	}
	return v.Class
}

// pause begins a wait, unless a dial is under way.
func (d *dialing[C]) pause() {
	if !d.idle() || d.won != nil || d.ctx.Err() != nil || d.s.dials.Stopped() {
		return
	}
	var short *budget.LoginError
	if d.release == nil && d.s.o.Logins != nil {
		short = d.s.o.Logins.BeforeDial(d.err)
	}
	d.startWait(short)
}

// startWait begins a wait. If no login is left, short says when there will be one; else it is nil.
func (d *dialing[C]) startWait(short *budget.LoginError) {
	cause := d.err
	d.since, d.until = time.Now(), d.s.dials.Due()
	if short != nil {
		if at := loginAt(short, d.since); !at.Before(d.until) {
			cause, d.until, d.s.again = short, at, false
		}
	}
	wait, verdict := max(d.until.Sub(d.since), 0), d.s.dials.History().Verdict
	verdict.RetryAfter = min(verdict.RetryAfter, wait) // a part of it may be over, because another dial went on
	d.waiting, d.wait = true, WaitStart{
		Name: d.s.hooks.name, Try: d.s.dials.Attempts() + 1, Cause: cause, Verdict: verdict, Drawn: wait - verdict.RetryAfter,
		again: d.s.again,
	}
	d.s.owner.waiting(&d.wait)
	call(d.s.calls, &hookNames.WaitStart, d.s.hooks.Load().WaitStart, d.wait)
}

// waitsForLogin reports whether the wait is for a login.
func (d *dialing[C]) waitsForLogin() bool {
	_, login := d.wait.Cause.(*budget.LoginError)
	return d.waiting && login && d.wait.Cause != d.err
}

// loginAt returns when a login will be left, on the clock of now. The budget may have another clock.
func loginAt(short *budget.LoginError, now time.Time) time.Time {
	wait, _ := short.RetryAfter()
	return now.Add(max(wait, time.Millisecond))
}

// awaitLogin reserves a login for the dial that is due. If no login is left, awaitLogin waits until there may be one,
// and reports that. It begins a new wait if the present one is not for a login, is over, or would end too late.
func (d *dialing[C]) awaitLogin(now time.Time) (waited bool, err error) {
	due := d.s.dials.Due() // zero: a dial is under way
	if d.release != nil || due.IsZero() || due.After(now) || d.s.dials.Stopped() {
		return false, nil
	}
	short, freed := d.reserve()
	if short == nil {
		return false, nil
	}
	goesOn := d.until.After(now)
	if login := d.waitsForLogin(); !login || !goesOn || loginAt(short, now).Before(d.until.Add(-time.Millisecond)) {
		d.resume(!login && goesOn) // a wait of the policy is over before its time only because of a kick
		d.startWait(short)
	}
	return true, d.await(d.until, freed)
}

// reserve reserves a login, unless one is reserved already.
func (d *dialing[C]) reserve() (short *budget.LoginError, freed <-chan struct{}) {
	if d.release != nil {
		return nil, nil
	}
	release, short, freed := d.s.o.Logins.Reserve(d.err)
	if short == nil {
		d.release = release
	}
	return short, freed
}

// freeLogin ends the reservation of a login, unless a dial needs it. A dial at the gate does not: another
// connection may be able to dial, to another host.
func (d *dialing[C]) freeLogin() {
	if d.release != nil && d.won == nil && d.atGate() && (!d.keeps || d.idle()) {
		d.release()
		d.release, d.keeps = nil, false
	}
}

// resume ends a wait.
func (d *dialing[C]) resume(kicked bool) {
	if !d.waiting {
		return
	}
	d.waiting = false
	call(d.s.calls, &hookNames.WaitDone, d.s.hooks.Load().WaitDone, WaitDone{
		Name:   d.wait.Name,
		Try:    d.wait.Try,
		Took:   time.Since(d.since),
		Kicked: kicked,
	})
}

// end ends all that is under way. It does so even if a hook has ended this goroutine.
func (d *dialing[C]) end() {
	last := d.last // before endDial changes it
	defer func() {
		if d.release != nil {
			d.release()
		}
		if d.won != nil && !d.taken {
			d.drop(d.won)
		} else if d.won != nil {
			d.won.cancel(nil)
		}
		if last != nil && last != d.won {
			d.drop(last) // because a hook may have ended the goroutine just after the dial
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

// endDial ends one dial.
func (d *dialing[C]) endDial(x *dial[C]) {
	defer x.session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil)
	if x.running == nil { // a hook did not return
		x.running = xsync.Go(func() { x.err = xsync.ErrNotReturned })
	}
	defer d.finish(x) // unless a hook ends the goroutine while cut waits, cut does it
	d.cut(x, context.Cause(d.ctx))
}
