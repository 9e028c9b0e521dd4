package reconnect

import (
	"context"
	"errors"
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
// redialed like any loss. A bad option is returned at once.
//
// The boundary of serve is the seam between two connections: what lives in one
// call of it never meets another connection. serve should call [Session.Ready]
// once the session is of use; until then it counts as a failed attempt, and
// without it waits never start again from the first.
//
// dial runs in a goroutine that Run waits for. Its context carries a
// [backoff.Try] and ends after the try's two limits together, unless dial reports by
// Try.Connected that it is connected: then a handshake that takes too long may be kept,
// and dial is called again beside it. So is it after a kick. At most two calls of it run
// at once, and with [RunOptions.OneConnection] only one. A call whose context has ended
// is waited for, also when the other one has brought a connection. A connection that dial brings
// back when its context has ended is closed. When ctx ends while serve runs,
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

	connecting(atGate bool)                                    // before the gate, and before a dial
	dialed(c C, s *Session)                                    // a session begins
	failed()                                                   // a dial brought no connection
	troubled(atGate bool, try int, err error, c backoff.Class) // a dial has failed, or hangs, and another goes on; c is as below
	waiting(w Wait, c backoff.Class)                           // before a wait; c is what Classify made of its cause
	ended(err error) error                                     // nothing follows; returns what Run returns
	lost(c C, err error) bool                                  // reports whether serve returned err because the connection was lost

	limit(t backoff.Try) time.Duration // on one dial

	kick() <-chan struct{} // ready to receive from when there is a kick
	took(open bool) bool   // it was received from, and was open or not: reports whether that was a kick
	forgetKicks()          // those that have come until now
}

// supervise is Run for options that are complete.
func supervise[C io.Closer](ctx context.Context, o *RunOptions, owner owner[C]) error {
	err := owner.ended(newSupervisor(o, owner).run(ctx))
	call(o.Trace.End, End{Name: o.Name, Err: err})
	return err
}

// supervisor is the state of one Run. It belongs to Run's goroutine.
type supervisor[C io.Closer] struct {
	owner owner[C]
	o     *RunOptions

	dials   backoff.Dials
	n       uint64          // sessions so far
	cause   error           // why the last one ended
	err     error           // the same, but what serve returned; nil before the first
	verdict backoff.Verdict // on the last dial or session
	down    time.Time       // since when: the last ready session was lost, or the start

	served xsync.Signal // tells cut that serve has returned
	over   atomic.Bool  // set before that
	cuts   sync.WaitGroup
}

// newSupervisor is not inlined, so that what it needs is not on the stack that waits for
// messages.
//
//go:noinline
func newSupervisor[C io.Closer](o *RunOptions, owner owner[C]) *supervisor[C] {
	s := &supervisor[C]{o: o, owner: owner, down: time.Now(), dials: backoff.NewDials(o.dials, o.random())}
	s.dials.Start(s.down)
	return s
}

// run is the state machine: connect, serve, judge. It and what it calls down
// to serve have small frames, and leave what needs more to functions that have
// returned by then: this stack waits for messages as long as the session lasts,
// and what is on it decides whether a connection costs 4 or 8 KiB of stack.
func (s *supervisor[C]) run(ctx context.Context) error {
	for {
		c, session, err := s.connect(ctx)
		if err == nil {
			s.err = s.session(ctx, c, session)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// session is one session, from a dial that has succeeded to its loss.
func (s *supervisor[C]) session(ctx context.Context, c C, session *Session) error {
	defer session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}) // where serve did not return
	s.n++
	now := time.Now()
	session.Number, session.Cause, session.Downtime, session.start = s.n, s.cause, now.Sub(s.down), now
	s.owner.dialed(c, session)
	call(s.o.Trace.SessionStart, session)
	err := s.hold(ctx, c, session)
	return s.sessionEnded(ctx, c, session, err)
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
	end := SessionEnd{Name: s.o.Name, Session: session.Number, Cause: err, Uptime: now.Sub(session.start)}
	up := time.Duration(-1)
	if wasReady {
		s.down, up = now, now.Sub(ready)
		end.Ready = up
	}
	end.Stable = s.dials.Ended(s.verdict, up, now)
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

// errNotReturned is what came of a function of the user's that did not return.
var errNotReturned = errors.New("the function did not return, but ended its goroutine (runtime.Goexit)")

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

func (f *functions[C]) serving() string                          { return "serve" }
func (f *functions[C]) connecting(bool)                          {}
func (f *functions[C]) dialed(C, *Session)                       {}
func (f *functions[C]) failed()                                  {}
func (f *functions[C]) troubled(bool, int, error, backoff.Class) {}
func (f *functions[C]) waiting(Wait, backoff.Class)              {}
func (f *functions[C]) ended(err error) error                    { return err }
func (f *functions[C]) kick() <-chan struct{}                    { return f.kicks }
func (f *functions[C]) lost(_ C, e error) bool                   { return isLoss(e) }

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
