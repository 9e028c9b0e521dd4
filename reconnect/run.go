package reconnect

import (
	"cmp"
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

// Run keeps one connection open. It dials, gives the connection to serve, closes it when serve returns,
// classifies why, waits, and dials again. It runs in the caller's goroutine, the supervisor. A bad
// option is an error at once. Otherwise Run returns
//
//   - when ctx ends, with [context.Cause];
//   - when a verdict is ClassStop, with that error;
//   - when the policy gives up, with an error that is [backoff.ErrGaveUp] and the last error.
//
// One call of serve is one session, in the caller's goroutine. Its context is ctx. It should call
// [Session.Ready] when the session is of use: until then the session counts as a failed attempt. A nil
// from serve is redialed like any loss. When ctx ends while serve runs, the connection is closed under
// it, so that Close must be safe to call at any time and more than once.
//
// dial runs in a goroutine of its own, which Run waits for even when its context has ended; Run closes
// a connection that comes too late. Its context carries a [schedule.Attempt], and ends after the
// Attempt's two limits together. It should try once, because Run does the trying again. dial is called
// a second time beside a call that takes too long after it has reported, by Attempt.Connected, that it
// is connected, and after a kick. At most two calls run at once, and with [RunOptions.OneConnection]
// one.
//
// If serve panics or ends by [runtime.Goexit], the connection is closed all the same, and the place at
// the gate is given back. A dial that ends by Goexit has failed.
func Run[C io.Closer](ctx context.Context, dial func(context.Context) (C, error),
	serve func(ctx context.Context, c C, s *Session) error, o *RunOptions) error {
	if dial == nil || serve == nil {
		return errors.New("reconnect: Run needs a dial and a serve function")
	}
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	hooks := &hooks{name: opts.Name}
	hooks.Store(opts.Trace)
	f := &functions[C]{dialer: dial, server: serve, kicks: opts.Kick, o: opts}
	err = newSupervisor(opts, opts.dials, f, hooks).run(ctx)
	call(opts.Trace.ConnDone, ConnDone{Name: opts.Name, Err: err, asked: ctx.Err() != nil && errors.Is(err, context.Cause(ctx))})
	return err
}

// owner is what a supervisor needs from the connection that it keeps open: a [Conn], or the functions
// given to [Run]. The supervisor calls the methods in its own goroutine, except for dial, and for
// serving, which any goroutine may call.
type owner[C io.Closer] interface {
	dial(ctx context.Context) (C, error)
	serve(ctx context.Context, c C, s *Session) error
	serving() string // returns the name of the user's function that serve is in

	connecting(atGate bool)                                    // a wait at the gate, or a dial, begins
	dialed(c C, s *Session)                                    // a session begins; sets its number
	failed()                                                   // a dial brought no connection
	troubled(atGate bool, try int, err error, c backoff.Class) // a dial has failed, or hangs, and another goes on; c is as below
	waiting(w WaitStart, c backoff.Class)                      // a wait begins; c is what Classify made of its cause
	lost(c C, err error) bool                                  // reports whether serve returned err because the connection was lost
	judge(err error) backoff.Verdict                           // returns the verdict on why a dial has failed or a session has ended
	ending(ctx context.Context, c C, err error) ending         // returns how the session of c has ended; ctx is that of the supervisor
	replaced(v backoff.Verdict) bool                           // reports whether another supervisor goes on after a session that has ended with that verdict

	limit(t schedule.Attempt) time.Duration // returns the limit on one dial
	reserved() (release func())             // returns what ends the reservation of a login that was made for the next dial; nil: none was

	kick() <-chan struct{} // returns a channel from which a kick can be received
	took(open bool) bool   // reports whether what was received from it was a kick
	forgetKicks()          // forgets the kicks that have come until now
}

// ending is how a session has ended.
type ending struct {
	reason  backoff.Reason
	planned bool // the session was replaced, and did not die
	atOnce  bool // the next dial follows without a wait
}

// supervisor is the state of one Run. It belongs to Run's goroutine.
type supervisor[C io.Closer] struct {
	owner owner[C]
	o     *RunOptions
	hooks *hooks

	dials   schedule.Dials
	cause   error           // why the last session ended; nil before the first
	verdict backoff.Verdict // on the last dial or session
	refusal refusal
	again   bool         // the last session was refused as one before it: see refusal.note
	over    atomic.Bool  // set before served is sent
	down    link.Instant // when the last ready session was lost, or the start

	served xsync.Signal // sent to cut when serve has returned
	cuts   sync.WaitGroup
}

// trace returns the hooks as they are now.
func (s *supervisor[C]) trace() *Trace { return s.hooks.Load() }

// newSupervisor returns a supervisor that dials by dials until its first session that was ready, and by
// o.dials after that. It is not inlined, so that its frame is not on the stack that waits for messages.
//
//go:noinline
func newSupervisor[C io.Closer](o *RunOptions, dials *schedule.DialOptions, owner owner[C], h *hooks) *supervisor[C] {
	s := &supervisor[C]{o: o, owner: owner, hooks: h, down: link.Now(), dials: schedule.NewDials(dials, o.random())}
	s.dials.Start(time.Now())
	return s
}

// run is the state machine: connect, serve, classify. This stack waits for messages as long as the
// session lasts, and its depth decides whether a connection costs 4 or 8 KiB. So the functions from
// here down to serve have small frames, and leave the rest to functions that return before.
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
	defer session.leaveGate(backoff.Verdict{Class: backoff.ClassStop}, nil) // where serve did not return
	session.start = link.Now()
	session.Cause, session.Downtime = s.cause, session.start-s.down
	s.owner.dialed(c, session)
	call(s.trace().SessionStart, session)
	err := s.hold(ctx, c, session)
	s.sessionEnded(ctx, c, session, err)
}

// errServed is the cause of the end of a session whose serve function returned nil.
var errServed = errors.New("session ended by its owner")

// sessionEnded classifies why a session has ended, and starts the outage.
func (s *supervisor[C]) sessionEnded(ctx context.Context, c C, session *Session, err error) {
	err = cmp.Or(err, errServed)
	s.verdict = s.owner.judge(err)
	ready, wasReady := session.end()
	opened := s.openedVerdict(ctx, c, err)
	session.leaveGate(opened, err)
	s.cause = err
	ended, how := link.Now(), s.owner.ending(ctx, c, err)
	end := SessionDone{
		Name: s.hooks.name, Session: session.Number, Cause: err, Reason: how.reason, Uptime: ended - session.start, Planned: how.planned,
	}
	up := time.Duration(-1)
	if wasReady {
		s.down, up = ended, ended-ready
		end.Ready = up
		s.dials.Use(s.o.dials)
	}
	s.again = s.refusal.note(err, !wasReady && opened.Class == backoff.ClassOK, up)
	at, v := time.Now(), s.verdict
	v.NoCredit = v.NoCredit || end.Reason == backoff.ReasonProtocol
	end.Stable = s.dials.Ended(v, up, at)
	if how.atOnce {
		s.dials.Kick(at)
	}
	call(s.trace().SessionDone, end)
}

// gateVerdict returns the verdict on a dial for the gate. It is ClassStop, which says nothing about the
// host, if ctx ended the dial, or our own machine failed.
func (s *supervisor[C]) gateVerdict(ctx context.Context) backoff.Verdict {
	if ctx.Err() != nil {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	return s.verdict.OfServer()
}

// openedVerdict returns the gate's verdict on a session that was never ready. The host has answered the
// dial, so an overload, a slow opening and a lost connection count against the host. A refused login and a
// Retry-After do not, because the server may have meant one account.
func (s *supervisor[C]) openedVerdict(ctx context.Context, c C, err error) backoff.Verdict {
	v := s.gateVerdict(ctx)
	v.RetryAfter, v.Lenient = 0, false
	var slow openTimeout
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
		s.hooks.waitFor(served, s.owner.serving)
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
	dialer func(context.Context) (C, error)
	server func(context.Context, C, *Session) error
	kicks  <-chan struct{}
	o      *RunOptions
	n      uint64 // sessions so far
}

func (f *functions[C]) dial(ctx context.Context) (C, error) { return f.dialer(ctx) }

func (f *functions[C]) serve(ctx context.Context, c C, s *Session) error {
	err := f.server(ctx, c, s)
	f.forgetKicks() // because there was no outage
	return err
}

func (f *functions[C]) serving() string                          { return "serve" }
func (f *functions[C]) connecting(bool)                          {}
func (f *functions[C]) failed()                                  {}
func (f *functions[C]) troubled(bool, int, error, backoff.Class) {}
func (f *functions[C]) waiting(WaitStart, backoff.Class)         {}
func (f *functions[C]) kick() <-chan struct{}                    { return f.kicks }
func (f *functions[C]) lost(_ C, e error) bool                   { return isLoss(e) }

func (f *functions[C]) judge(err error) backoff.Verdict        { return f.o.classify(err) }
func (f *functions[C]) replaced(backoff.Verdict) bool          { return false }
func (f *functions[C]) reserved() func()                       { return nil }
func (f *functions[C]) limit(t schedule.Attempt) time.Duration { return dialLimit(t) }

func (f *functions[C]) dialed(_ C, s *Session) {
	f.n++
	s.Number = f.n
}

func (f *functions[C]) ending(ctx context.Context, _ C, err error) ending {
	if ctx.Err() != nil {
		return ending{reason: backoff.ReasonShutdown}
	}
	return ending{reason: link.ReasonOf(err)}
}

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

// isLoss reports whether err says that a connection was lost, and is not an answer of the peer.
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
