package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Run keeps one connection alive: it dials, gives the connection to serve, closes
// it when serve returns, judges why, waits, and dials again. It runs in the
// caller's goroutine and returns when ctx ends (with [context.Cause]), when the
// verdict on an error is Stop (with that error) or when the policy gives up (with
// an error that is [backoff.ErrGaveUp] and the last error). A nil from serve is
// redialled like any loss. A bad option is returned at once.
//
// The boundary of serve is the seam between two connections: what lives in one
// call of it never meets another connection. serve should call [Session.Ready]
// once the session is of use; until then it counts as a failed attempt, and
// without it waits never start again from the first.
//
// dial runs in a goroutine that Run waits for. Its context carries a
// [backoff.Try] and ends after the try's two limits together; a connection that
// it brings back when ctx has ended is closed. When ctx ends while serve runs,
// the connection is closed under it, so Close must be safe to call at any time
// and more than once. When serve panics, or ends by [runtime.Goexit], the
// connection is closed all the same, and the gate hears that the dial is over; a
// dial that ends by Goexit has failed.
func Run[C io.Closer](ctx context.Context, dial func(context.Context) (C, error),
	serve func(ctx context.Context, c C, s *Session) error, o *RunOptions) error {
	if dial == nil || serve == nil {
		return errors.New("reconnect: Run needs a dial and a serve function")
	}
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	return supervise(ctx, opts, &functions[C]{dialer: dial, server: serve, kicks: opts.Kick})
}

// owner is whose connection a supervisor keeps open: a [Conn], or the functions
// given to [Run]. The supervisor calls its methods from its own goroutine, but for
// dial, and serving, which any may call.
type owner[C io.Closer] interface {
	dial(ctx context.Context) (C, error)
	serve(ctx context.Context, c C, s *Session) error
	serving() string // the function of the user's that serve is in

	connecting(atGate bool)          // before the gate, and before a dial
	dialed(c C, s *Session)          // a session begins
	failed()                         // a dial brought no connection
	waiting(w Wait, c backoff.Class) // before a wait; c is what Classify made of its cause
	ended(err error) error           // nothing follows; returns what Run returns
	lost(c C, err error) bool        // reports whether serve returned err because the connection was lost

	limit(t backoff.Try) time.Duration // on one dial

	kick() <-chan struct{} // ready to receive from when there is a kick
	took(open bool) bool   // it was received from, and was open or not: reports whether that was a kick
	forgetKicks()          // those that have come until now
}

// supervise is Run for options that are complete.
func supervise[C io.Closer](ctx context.Context, o *RunOptions, owner owner[C]) error {
	s := &supervisor[C]{o: o, owner: owner, down: time.Now()}
	s.outage.Begin(s.down)
	err := owner.ended(s.run(ctx))
	call(o.Trace.End, End{Name: o.Name, Err: err})
	return err
}

// supervisor is the state of one Run. It belongs to Run's goroutine.
type supervisor[C io.Closer] struct {
	owner owner[C]
	o     *RunOptions

	outage  backoff.Outage
	step    backoff.Step    // the last wait, and the limits on the try after it
	waited  time.Duration   // the last wait, with what a server asked for
	tries   int             // since the last stable session
	n       uint64          // sessions so far
	cause   error           // why the last one ended
	verdict backoff.Verdict // on what the last attempt returned
	down    time.Time       // since when: the last ready session was lost, or the start
	kicked  bool            // a kick came during the last dial

	served xsync.Signal // tells cut that serve has returned
	over   atomic.Bool  // set before that
	cuts   sync.WaitGroup
}

// run is the state machine: dial, serve, judge, wait. It and what it calls down
// to serve have small frames, and leave what needs more to functions that have
// returned by then: this stack waits for messages as long as the session lasts,
// and what is on it decides whether a connection costs 4 or 8 KiB of stack.
func (s *supervisor[C]) run(ctx context.Context) error {
	for {
		err := s.attempt(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w, end := s.decide(err)
		if end != nil {
			return end
		}
		if !s.wait(ctx, w) {
			return context.Cause(ctx)
		}
	}
}

// attempt is one try, and the session that comes of it.
func (s *supervisor[C]) attempt(ctx context.Context) error {
	session := &Session{Name: s.o.Name, trace: s.o.Trace}
	defer session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}) // where a function of the user's did not return
	c, err := s.connect(ctx, session)
	if err != nil {
		return err
	}
	err = s.hold(ctx, c, session)
	return s.sessionEnded(ctx, c, session, err)
}

// decide returns the wait before the next try, or why there is none.
func (s *supervisor[C]) decide(err error) (Wait, error) {
	step, ok := s.outage.Next(s.o.Policy, s.verdict, time.Now(), s.o.random())
	verdict := s.outage.Attempt().Verdict
	switch {
	case verdict.Class == backoff.ClassStop:
		return Wait{}, err
	case !ok:
		return Wait{}, fmt.Errorf("%w after %d tries: %w", backoff.ErrGaveUp, s.tries, err)
	}
	s.step = step
	s.waited = verdict.RetryAfter + step.Wait
	return Wait{Name: s.o.Name, Try: s.tries, Cause: err, Verdict: verdict, Drawn: step.Wait}, nil
}

// connect passes the gate and dials.
func (s *supervisor[C]) connect(ctx context.Context, session *Session) (c C, err error) {
	if err = s.enterGate(ctx, session); err != nil {
		s.verdict = s.o.classify(err)
		return c, err
	}
	c, err = s.dial(ctx)
	s.tries++
	if err != nil {
		s.verdict = s.o.classify(err)
		session.leaveGate(s.gateVerdict(ctx))
		s.owner.failed()
		return c, err
	}
	s.n++
	s.kicked = false
	now := time.Now()
	session.N, session.Cause, session.Downtime, session.start = s.n, s.cause, now.Sub(s.down), now
	s.owner.dialed(c, session)
	call(s.o.Trace.SessionStart, session)
	return c, nil
}

// errServed is the cause of a session whose serve function returned nil.
var errServed = errors.New("session ended by its owner")

// sessionEnded notes that a session has ended, and why.
func (s *supervisor[C]) sessionEnded(ctx context.Context, c C, session *Session, err error) error {
	if err == nil {
		err = errServed
	}
	s.verdict = s.o.classify(err)
	ready, wasReady := session.end()
	session.leaveGate(s.openedVerdict(ctx, c, err))
	s.cause = err
	now := time.Now()
	end := SessionEnd{Name: s.o.Name, N: session.N, Cause: err, Uptime: now.Sub(session.start)}
	if wasReady {
		s.down = now
		end.Ready = now.Sub(ready)
		if end.Ready >= max(s.o.StableAfter, s.waited) {
			s.outage.Stable(now)
			s.step, s.waited, s.tries = backoff.Step{}, 0, 0
			end.Stable = true
		}
	}
	call(s.o.Trace.SessionDone, end)
	return err
}

// gateVerdict returns the verdict on a dial to report to the gate: ClassStop, which
// says nothing about the host, if ctx ended the dial, or our own machine failed.
func (s *supervisor[C]) gateVerdict(ctx context.Context) backoff.Verdict {
	if ctx.Err() != nil {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	return s.verdict.OfServer()
}

// openedVerdict returns the verdict on a session that was never ready, to report to
// the gate. The host has answered the dial, so that only an overload, an opening
// that took too long or a lost connection counts against it; a login that was
// refused does not, because it is the affair of one account. Nor does what that
// account was asked to wait hold the others.
func (s *supervisor[C]) openedVerdict(ctx context.Context, c C, err error) backoff.Verdict {
	v := s.gateVerdict(ctx)
	v.RetryAfter, v.Lenient = 0, false
	var slow *OpenTimeoutError
	switch {
	case v.Class == backoff.ClassStop && ctx.Err() != nil, v.Class == backoff.ClassOverload:
	case errors.As(err, &slow):
		v.Class = backoff.ClassOverload
	case s.owner.lost(c, err):
		v.Class = backoff.ClassRetry
	default:
		v.Class = backoff.ClassOK
	}
	return v
}

// enterGate waits at the gate, if there is one.
func (s *supervisor[C]) enterGate(ctx context.Context, session *Session) error {
	if s.o.Gate == nil {
		return nil
	}
	s.owner.connecting(true)
	call(s.o.Trace.GateStart, GateStart{Name: s.o.Name, Host: s.o.Host})
	start := time.Now()
	leave, err := s.o.Gate.Acquire(ctx, s.o.Host)
	if err == nil {
		session.enterGate(leave)
	}
	call(s.o.Trace.GateDone, GateDone{Name: s.o.Name, Host: s.o.Host, Took: time.Since(start), Err: err})
	if err != nil {
		return fmt.Errorf("gate %s: %w", s.o.Host, err)
	}
	return nil
}

// dial runs the owner's dial in a goroutine of its own, since a handshake needs
// much stack.
func (s *supervisor[C]) dial(ctx context.Context) (C, error) {
	try := s.outage.Try(s.step)
	limit := s.owner.limit(try)
	ctx2, cancel := context.WithTimeout(backoff.WithTry(ctx, try), limit)
	defer cancel()

	s.owner.connecting(false)
	call(s.o.Trace.DialStart, DialStart{Name: s.o.Name, Try: s.tries, Limit: limit})
	start := time.Now()
	var c C
	var err error
	dial := xsync.Go(func() { c, err = s.owner.dial(ctx2) })
	s.await(ctx2, dial)
	switch {
	case !dial.Returned():
		err = fmt.Errorf("dial: %w", errNotReturned)
	case err == nil && ctx2.Err() != nil:
		c.Close() // it came too late
		err = fmt.Errorf("dial: %w", context.Cause(ctx2))
	}
	call(s.o.Trace.DialDone, DialDone{Name: s.o.Name, Try: s.tries, Took: time.Since(start), Err: err})
	return c, err
}

// errNotReturned is what came of a function of the user's that did not return.
var errNotReturned = errors.New("the function did not return, but ended its goroutine (runtime.Goexit)")

// await waits until a dial has ended, and notes a kick that comes meanwhile.
func (s *supervisor[C]) await(ctx context.Context, dial *xsync.Call) {
	s.owner.forgetKicks()
	for s.kicked = false; ; {
		select {
		case <-dial.Done():
			return
		case <-ctx.Done():
			s.o.Trace.waitFor(dial.Done(), s.o.Name, func() string { return "dial" })
			return
		case _, open := <-s.owner.kick():
			s.kicked = s.owner.took(open) || s.kicked
		}
	}
}

// hold gives c to serve and closes it afterwards, or when ctx ends.
func (s *supervisor[C]) hold(ctx context.Context, c C, session *Session) error {
	s.cuts.Add(1)
	stop := xsync.AfterFunc(ctx, func() { s.cut(c) }) // joined by release
	defer s.release(c, stop)
	return s.owner.serve(ctx, c, session)
}

// cut closes the connection under serve, and waits until serve has returned.
func (s *supervisor[C]) cut(c C) {
	defer s.cuts.Done()
	c.Close()
	if served := s.served.Wait(); !s.over.Load() {
		s.o.Trace.waitFor(served, s.o.Name, s.owner.serving)
	}
}

// release is the end of hold.
func (s *supervisor[C]) release(c C, stop func() bool) {
	if stop() {
		s.cuts.Done()
	} else {
		s.over.Store(true) // ctx has ended, so this was the last session
		s.served.Broadcast()
		s.cuts.Wait()
	}
	c.Close()
}

// wait waits for what the server asked for and then for what the policy drew, and
// reports whether ctx lasted. Only the second part can be cut short.
func (s *supervisor[C]) wait(ctx context.Context, w Wait) bool {
	s.owner.waiting(w, s.verdict.Class)
	call(s.o.Trace.WaitStart, w)
	start := time.Now()
	ok := true
	if w.Verdict.RetryAfter > 0 {
		ok = sleep(ctx, w.Verdict.RetryAfter)
		s.kicked = false
		s.owner.forgetKicks()
	}
	if ok && !s.kicked && w.Drawn > 0 {
		ok = s.sleep(ctx, w.Drawn)
	}
	call(s.o.Trace.WaitDone, WaitDone{Name: w.Name, Try: w.Try, Took: time.Since(start), Kicked: s.kicked})
	return ok && ctx.Err() == nil
}

// sleep lasts d, or until a kick or ctx ends it, and reports whether ctx lasted.
func (s *supervisor[C]) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return true
		case _, open := <-s.owner.kick():
			if s.kicked = s.owner.took(open); s.kicked {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// sleep lasts d, or until ctx ends, and reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// functions is the owner of a bare Run.
type functions[C io.Closer] struct {
	dialer func(context.Context) (C, error)
	server func(context.Context, C, *Session) error
	kicks  <-chan struct{}
}

func (f *functions[C]) dial(ctx context.Context) (C, error) { return f.dialer(ctx) }

func (f *functions[C]) serve(ctx context.Context, c C, s *Session) error {
	err := f.server(ctx, c, s)
	f.forgetKicks() // meant for an outage that was not
	return err
}

func (f *functions[C]) serving() string             { return "serve" }
func (f *functions[C]) connecting(bool)             {}
func (f *functions[C]) dialed(C, *Session)          {}
func (f *functions[C]) failed()                     {}
func (f *functions[C]) waiting(Wait, backoff.Class) {}
func (f *functions[C]) ended(err error) error       { return err }
func (f *functions[C]) kick() <-chan struct{}       { return f.kicks }
func (f *functions[C]) lost(_ C, e error) bool      { return isLoss(e) }

func (f *functions[C]) limit(t backoff.Try) time.Duration { return dialLimit(t) }

func (f *functions[C]) took(open bool) bool {
	if !open {
		f.kicks = nil // nobody can kick any more
	}
	return open
}

func (f *functions[C]) forgetKicks() {
	for range len(f.kicks) + 1 { // and one who waits to send
		select {
		case _, open := <-f.kicks:
			f.took(open)
		default:
		}
	}
}

// isLoss reports whether err is what is left of a connection, and not what came by
// it.
func isLoss(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network)
}

// dialLimit is how long one whole try may take.
func dialLimit(t backoff.Try) time.Duration {
	connect, handshake := t.Connect, t.Handshake
	if connect <= 0 {
		connect = backoff.DefaultConnect
	}
	if handshake <= 0 {
		handshake = backoff.DefaultHandshake
	}
	if connect > math.MaxInt64-handshake {
		return math.MaxInt64
	}
	return connect + handshake
}
