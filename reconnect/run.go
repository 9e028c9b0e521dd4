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
	"github.com/redial-go/redial/reconnect/backoff/schedule"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Run keeps one connection open. It dials, gives the connection to serve, closes it when
// serve returns, classifies why, waits, and dials again. It runs in the caller's goroutine,
// the supervisor, and returns when ctx ends (with [context.Cause]), when a verdict is
// ClassStop (with that error), or when the policy gives up (with an error that is
// [backoff.ErrGaveUp] and the last error). The error of a bad option comes at once.
//
// One call of serve is one session, in the caller's goroutine; nothing that lives in it meets
// another connection. Its context is ctx. It should call [Session.Ready] when the session is
// of use. Until then the session counts as a failed attempt, and without it the waits never
// start again from the first. A nil from serve is redialed like any loss. When ctx ends while
// serve runs, the connection is closed under it, so that Close must be safe to call at any
// time and more than once.
//
// dial runs in a goroutine of its own, which Run waits for. Its context carries a
// [schedule.Attempt], and ends after that Attempt's two limits together. It should try once,
// such as by a net.Dialer, because Run does the trying again. But if dial reports by
// Attempt.Connected that it is connected, a handshake that takes too long may be kept, and dial
// is called again beside it. A kick calls it beside a dial, too. At most two calls run at
// once, and with [RunOptions.OneConnection] one. Run waits for a call whose context has
// ended, even when the other one has brought a connection, and closes a connection that
// comes too late.
//
// If serve panics or ends by [runtime.Goexit], the connection is closed all the same, and the
// place at the gate is given back. A dial that ends by Goexit has failed.
func Run[C io.Closer](ctx context.Context, dial func(context.Context) (C, error),
	serve func(ctx context.Context, c C, s *Session) error, o *RunOptions) error {
	if dial == nil || serve == nil {
		return errors.New("reconnect: Run needs a dial and a serve function")
	}
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	f := &functions[C]{label: opts.Name, dialer: dial, server: serve, kicks: opts.Kick, o: opts}
	f.observed.Store(opts.Trace)
	return supervise(ctx, opts, f)
}

// owner is the owner of the connection that a supervisor keeps open: a [Conn], or the
// functions given to [Run]. The supervisor calls its methods in its own goroutine, except for
// dial, and for serving, which any goroutine may call.
type owner[C io.Closer] interface {
	dial(ctx context.Context) (C, error)
	serve(ctx context.Context, c C, s *Session) error
	nextSession() uint64 // returns the number of a new session
	name() string        // returns the name of the connection in the events of Trace
	hooks() *hooks       // returns the hooks that observe the connection
	serving() string     // returns the name of the user's function that serve is in

	connecting(atGate bool)                                    // a wait at the gate, or a dial, begins
	dialed(c C, s *Session)                                    // a session begins
	failed()                                                   // a dial brought no connection
	troubled(atGate bool, try int, err error, c backoff.Class) // a dial has failed, or hangs, and another goes on; c is as below
	waiting(w WaitStart, c backoff.Class)                      // a wait begins; c is what Classify made of its cause
	ended(err error) error                                     // nothing follows; returns what Run returns
	lost(c C, err error) bool                                  // reports whether serve returned err because the connection was lost
	judge(err error) backoff.Verdict                           // returns the verdict on why a dial has failed or a session has ended
	reason(ctx context.Context, c C, err error) backoff.Reason // returns the kind of err, with which a session has ended; ctx is that of the supervisor
	atOnce(c C) bool                                           // reports whether the next dial follows the end of c at once
	wasReplaced(c C) bool                                      // reports whether the session of c was replaced, and did not die
	replaced(v backoff.Verdict) bool                           // reports whether another supervisor goes on after a session that has ended with that verdict

	limit(t schedule.Attempt) time.Duration // returns the limit on one dial

	kick() <-chan struct{} // returns a channel from which a kick can be received
	took(open bool) bool   // reports whether what was received from it was a kick
	forgetKicks()          // forgets the kicks that have come until now
}

// supervise is Run for options that are complete.
func supervise[C io.Closer](ctx context.Context, o *RunOptions, owner owner[C]) error {
	err := owner.ended(newSupervisor(o, o.dials, owner).run(ctx))
	call(owner.hooks().Load().ConnDone, ConnDone{Name: owner.name(), Err: err})
	return err
}

// supervisor is the state of one Run. It belongs to Run's goroutine.
type supervisor[C io.Closer] struct {
	owner owner[C]
	o     *RunOptions

	dials   schedule.Dials
	cause   error           // why the last session ended; nil before the first
	verdict backoff.Verdict // on the last dial or session
	down    link.Instant    // when the last ready session was lost, or the start

	served xsync.Signal // sent to cut when serve has returned
	over   atomic.Bool  // set before served is sent
	cuts   sync.WaitGroup
}

// trace returns the hooks as they are now.
func (s *supervisor[C]) trace() *Trace { return s.owner.hooks().Load() }

// newSupervisor returns a supervisor that dials by these options until its first session, and by
// those in o after that. It is not inlined, so that its frame is not on the stack that waits for
// messages.
//
//go:noinline
func newSupervisor[C io.Closer](o *RunOptions, dials *schedule.DialOptions, owner owner[C]) *supervisor[C] {
	s := &supervisor[C]{o: o, owner: owner, down: link.Now(), dials: schedule.NewDials(dials, o.random())}
	s.dials.Start(time.Now())
	return s
}

// run is the state machine: connect, serve, classify. The functions from here down to serve
// have small frames, and leave what needs more to functions that have returned by then,
// because this stack waits for messages as long as the session lasts: its depth decides
// whether a connection costs 4 or 8 KiB of stack.
func (s *supervisor[C]) run(ctx context.Context) error {
	for {
		c, session, err := s.connect(ctx)
		if err == nil {
			s.session(ctx, c, session)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if s.owner.replaced(s.verdict) {
			return errReplaced
		}
	}
}

// session is one session, from a dial that has succeeded to its loss.
func (s *supervisor[C]) session(ctx context.Context, c C, session *Session) {
	defer session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}) // where serve did not return
	session.start = link.Now()
	session.Number, session.Cause, session.Downtime = s.owner.nextSession(), s.cause, session.start-s.down
	s.dials.Use(s.o.dials)
	s.owner.dialed(c, session)
	call(s.trace().SessionStart, session)
	err := s.hold(ctx, c, session)
	s.sessionEnded(ctx, c, session, err)
}

// errServed is the cause of the end of a session whose serve function returned nil.
var errServed = errors.New("session ended by its owner")

// sessionEnded classifies why a session has ended, and starts the outage.
func (s *supervisor[C]) sessionEnded(ctx context.Context, c C, session *Session, err error) {
	if err == nil {
		err = errServed
	}
	s.verdict = s.owner.judge(err)
	ready, wasReady := session.end()
	session.leaveGate(s.openedVerdict(ctx, c, err))
	s.cause = err
	ended := link.Now()
	end := SessionDone{
		Name: s.owner.name(), Session: session.Number, Cause: err, Reason: s.owner.reason(ctx, c, err),
		Uptime: ended - session.start, Planned: s.owner.wasReplaced(c),
	}
	up := time.Duration(-1)
	if wasReady {
		s.down, up = ended, ended-ready
		end.Ready = up
	}
	at, v := time.Now(), s.verdict
	v.NoCredit = v.NoCredit || end.Reason == backoff.ReasonProtocol
	end.Stable = s.dials.Ended(v, up, at)
	if s.owner.atOnce(c) {
		s.dials.Kick(at)
	}
	call(s.trace().SessionDone, end)
}

// gateVerdict returns the verdict on a dial for the gate: ClassStop, which says nothing about
// the host, if ctx ended the dial, or our own machine failed.
func (s *supervisor[C]) gateVerdict(ctx context.Context) backoff.Verdict {
	if ctx.Err() != nil {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	return s.verdict.OfServer()
}

// openedVerdict returns the verdict on a session that was never ready, for the gate. The host
// has answered the dial, so that only an overload, an opening that took too long or a lost
// connection counts against it. A login that was refused does not, because it concerns one
// account. For the same reason the time that one account was told to wait does not hold the
// others.
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
		s.owner.hooks().waitFor(served, s.owner.name(), s.owner.serving)
	}
}

// release ends what hold began.
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
	label    string
	dialer   func(context.Context) (C, error)
	server   func(context.Context, C, *Session) error
	kicks    <-chan struct{}
	o        *RunOptions
	observed hooks
	n        uint64 // sessions so far
}

func (f *functions[C]) dial(ctx context.Context) (C, error) { return f.dialer(ctx) }

func (f *functions[C]) serve(ctx context.Context, c C, s *Session) error {
	err := f.server(ctx, c, s)
	f.forgetKicks() // because there was no outage
	return err
}

func (f *functions[C]) name() string                             { return f.label }
func (f *functions[C]) hooks() *hooks                            { return &f.observed }
func (f *functions[C]) serving() string                          { return "serve" }
func (f *functions[C]) connecting(bool)                          {}
func (f *functions[C]) dialed(C, *Session)                       {}
func (f *functions[C]) failed()                                  {}
func (f *functions[C]) troubled(bool, int, error, backoff.Class) {}
func (f *functions[C]) waiting(WaitStart, backoff.Class)         {}
func (f *functions[C]) ended(err error) error                    { return err }
func (f *functions[C]) kick() <-chan struct{}                    { return f.kicks }
func (f *functions[C]) lost(_ C, e error) bool                   { return isLoss(e) }

func (f *functions[C]) nextSession() uint64 {
	f.n++
	return f.n
}

func (f *functions[C]) reason(ctx context.Context, _ C, err error) backoff.Reason {
	if ctx.Err() != nil {
		return backoff.ReasonShutdown
	}
	return link.ReasonOf(err)
}

func (f *functions[C]) judge(err error) backoff.Verdict { return f.o.classify(err) }
func (f *functions[C]) atOnce(C) bool                   { return false }
func (f *functions[C]) wasReplaced(C) bool              { return false }
func (f *functions[C]) replaced(backoff.Verdict) bool   { return false }

func (f *functions[C]) limit(t schedule.Attempt) time.Duration { return dialLimit(t) }

func (f *functions[C]) took(open bool) bool {
	if !open {
		f.kicks = nil // because a closed channel kicks nobody
	}
	return open
}

func (f *functions[C]) forgetKicks() {
	for range len(f.kicks) + 1 { // one more, because a sender may wait
		select {
		case _, open := <-f.kicks:
			f.took(open)
		default:
		}
	}
}

// isLoss reports whether err says that a connection was lost, and not what the peer said by
// it.
func isLoss(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network)
}

// dialLimit returns how long one whole try may take.
func dialLimit(t schedule.Attempt) time.Duration {
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
