package reconnect

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Run keeps one connection open. It dials, passes the connection to serve, closes it when serve returns,
// classifies why, waits, and dials again. The caller's goroutine is the supervisor. With an invalid
// option Run returns an error immediately. Otherwise it returns
//
//   - when ctx is done, with [context.Cause];
//   - when a verdict is ClassStop, with that error;
//   - when the policy gives up, with an error that is [backoff.ErrGaveUp] and the last error.
//
// One call of serve, in the caller's goroutine and with ctx, is one session. It should call
// [Session.Ready] once the session is usable: until then the session counts as a failed attempt. A nil
// error from serve is redialed like any loss. When ctx is done while serve runs, the connection is
// closed concurrently, so Close must be safe to call at any time and more than once. Run waits for Close
// before it dials again.
//
// dial runs in its own goroutine, for which Run always waits; Run closes a connection that comes too
// late. Its context carries a [backoff.Attempt], and is done after the Attempt's two limits together. It
// should not retry. Without [RunOptions.OneConnection], a second dial runs concurrently after a kick, or
// if the first takes too long after calling Attempt.Connected.
//
// If serve or a hook panics or ends by [runtime.Goexit], the connection is closed nevertheless, and the
// gate's slot is released. A dial that ends by Goexit has failed.
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
	calls := new(watch.Calls)
	calls.Init(hooks, watch.SlowAfter)
	defer calls.Stop()
	f := &functions[C]{dialer: dial, server: serve, kicks: opts.Kick, o: opts, calls: calls}
	err = newSupervisor(opts, opts.dials, f, hooks, calls).run(ctx)
	call(calls, &hookNames.ConnDone, opts.Trace.ConnDone, ConnDone{
		Name:  opts.Name,
		Err:   err,
		asked: ctx.Err() != nil && errors.Is(err, context.Cause(ctx)),
	})
	return err
}

// owner is what a supervisor needs from the connection that it keeps open: a [Conn], or the functions
// given to [Run]. The supervisor calls the methods in its own goroutine, except for dial, and for
// serving, which any goroutine may call.
type owner[C io.Closer] interface {
	dial(ctx context.Context) (C, error)
	serve(ctx context.Context, c C, s *Session) (ending, error) // one session, and how it has ended

	dialed(c C, s *Session) // a session begins; sets its number
	attemptFailed()         // a dial brought no connection
	waiting(w *WaitStart)   // a wait begins; sets the session that the next dial is to replace

	connecting(atGate bool, host string) // a wait at the gate for host, or a dial, begins

	// troubled says that a dial has failed, or hangs, while another continues. class is that of the
	// verdict on err.
	troubled(atGate bool, try int, err error, class backoff.Class)

	// judge returns the verdict on why a dial has failed or a session has ended.
	judge(err error) backoff.Verdict

	// replaced reports whether another supervisor continues after a session that has ended with
	// that verdict.
	replaced(v backoff.Verdict) bool

	// limit returns the limit on one dial.
	limit(t backoff.Attempt) time.Duration

	kick() <-chan struct{} // returns a channel from which a kick can be received
	took(open bool) bool   // reports whether what was received from it was a kick
	forgetKicks()          // forgets the kicks that have come until now; a dial begins, or its wait at the gate
}

// ending is how a session has ended.
type ending struct {
	reason  backoff.Reason
	lost    bool   // serve returned because the connection was lost; has a meaning if the session was never ready
	planned bool   // the session was replaced, and did not die
	atOnce  bool   // the next dial follows without a wait
	login   func() // ends the reservation of a login that was made for the next dial, or nil
}

// supervisor is the state of one Run. It belongs to Run's goroutine.
type supervisor[C io.Closer] struct {
	owner owner[C]
	o     *RunOptions
	hooks *hooks
	calls *watch.Calls // the calls of the user's functions in Run's goroutine

	host    string // the host for which the next dial waits at the gate
	dials   schedule.Dials
	cause   error           // why the last session ended; nil before the first
	verdict backoff.Verdict // on the last dial or session
	refusal refusal
	again   bool         // the last session was refused as one before it: see refusal.note
	over    atomic.Bool  // set before served is sent
	down    link.Instant // when the last ready session was lost, or the start
	login   func()       // ends the reservation of a login for the next dial, or nil

	served xsync.Signal // sent to cut when serve has returned
	cuts   sync.WaitGroup
}

// newSupervisor returns a supervisor that dials by dials until its first session that was ready, and by
// o.dials after that. It is not inlined, so that its frame is not on the stack that waits for messages.
//
//go:noinline
func newSupervisor[C io.Closer](
	o *RunOptions, dials *schedule.DialOptions, owner owner[C], h *hooks, calls *watch.Calls,
) *supervisor[C] {
	s := &supervisor[C]{
		o: o, owner: owner, hooks: h, calls: calls,
		host: o.Host, down: link.Now(), dials: schedule.NewDials(dials, o.random()),
	}
	outer := calls.Enter(o.policyName)
	s.dials.Start(time.Now())
	calls.Leave(outer)
	return s
}

// judge returns the verdict on why a dial has failed or a session has ended.
func (s *supervisor[C]) judge(err error) backoff.Verdict {
	outer := s.calls.Enter(s.o.classifyName)
	v := s.owner.judge(err)
	s.calls.Leave(outer)
	return v
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
	how, err := s.hold(ctx, c, session)
	s.sessionEnded(ctx, session, how, err)
}

// errServed is the cause of the end of a session whose serve function returned nil.
var errServed = errors.New("session ended by its owner")

// sessionEnded classifies why a session has ended, and starts the outage. It begins now, however long the
// callbacks take.
func (s *supervisor[C]) sessionEnded(ctx context.Context, session *Session, how ending, err error) {
	ended, at := link.Now(), time.Now()
	s.login = how.login
	err = cmp.Or(err, errServed)
	s.verdict = s.judge(err)
	ready, wasReady := session.end()
	s.cause = err
	end := SessionDone{
		Name: s.hooks.name, Session: session.Number, Cause: err, Reason: how.reason, Uptime: ended - session.start, Planned: how.planned,
	}
	up, answered := time.Duration(-1), false
	if wasReady {
		s.down, up = ended, ended-ready
		end.Ready = up
		s.dials.Use(s.o.dials)
	} else {
		opened := s.openedVerdict(ctx, err, how.lost)
		session.leaveGate(opened, err)
		answered = opened.Class == backoff.ClassOK
	}
	s.again = s.refusal.note(err, answered, up)
	v := s.verdict
	v.NoCredit = v.NoCredit || end.Reason == backoff.ReasonProtocol
	outer := s.calls.Enter(s.o.policyName)
	end.Stable = s.dials.Ended(v, up, at)
	s.calls.Leave(outer)
	if how.atOnce {
		s.dials.Kick(at)
	}
	call(s.calls, &hookNames.SessionDone, s.hooks.Load().SessionDone, end)
}

// openedVerdict returns the gate's verdict on a session that was never ready. The host has answered the
// dial, so an overload, a slow opening and a lost connection count against the host. A refused login and a
// Retry-After do not, because the server may have meant one account.
func (s *supervisor[C]) openedVerdict(ctx context.Context, err error, lost bool) backoff.Verdict {
	if ctx.Err() != nil {
		return backoff.Verdict{Class: backoff.ClassStop}
	}
	v := s.verdict.OfServer()
	v.RetryAfter, v.Lenient = 0, false
	var slow openTimeout
	switch {
	case v.Class == backoff.ClassOverload:
	case errors.As(err, &slow):
		v.Class, v.Caller = backoff.ClassOverload, false
	case lost:
		v.Class, v.Caller = backoff.ClassRetry, false
	default:
		v.Class = backoff.ClassOK
	}
	return v
}

// refusal is how the peer has refused the last session that it refused: a close code, or the text of an error. It is
// empty if the peer has refused none. It belongs to the supervisor's goroutine. Log warns if a refusal comes again.
type refusal string

// note notes the error by which a session has ended, and reports whether the peer has refused the session as it did
// the last one that it refused. answered says that the error is the answer to a login. ready is how long the session
// was ready: after an hour the refusal before it is forgotten.
func (r *refusal) note(err error, answered bool, ready time.Duration) (again bool) {
	var closed interface{ CloseCode() int }
	text := ""
	switch {
	case errors.As(err, &closed) && closed.CloseCode() >= 3000: // without the reason, which may differ each time
		text = strconv.Itoa(closed.CloseCode())
	case answered && err != errServed:
		text = err.Error()
	}
	if again = text != "" && text == string(*r); text != "" || ready >= time.Hour {
		*r = refusal(text)
	}
	return again
}

// hold passes c to serve and closes it afterwards, or when ctx is done. It also closes c if
// Trace.SessionStart does not return.
func (s *supervisor[C]) hold(ctx context.Context, c C, session *Session) (ending, error) {
	s.cuts.Add(1)
	stop := xsync.AfterFunc(ctx, func() { s.cut(c) }) // joined by release
	defer s.release(c, stop)
	call(s.calls, &hookNames.SessionStart, s.hooks.Load().SessionStart, session)
	return s.owner.serve(ctx, c, session)
}

// cut closes the connection under serve, and waits until serve has returned.
func (s *supervisor[C]) cut(c C) {
	defer s.cuts.Done()
	s.calls.End()
	watch.Time(s.hooks, watch.SlowAfter, closeName, nil, func() { c.Close() })
	if served := s.served.Wait(); !s.over.Load() {
		<-served
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
	s.close(c)
}

// close closes c, and times the call for SlowHandler and Overdue.
func (s *supervisor[C]) close(c C) {
	outer := s.calls.Enter(&closeName)
	c.Close()
	s.calls.Leave(outer)
}

// functions is the owner of a bare Run.
type functions[C io.Closer] struct {
	dialer func(context.Context) (C, error)
	server func(context.Context, C, *Session) error
	kicks  <-chan struct{}
	o      *RunOptions
	calls  *watch.Calls
	n      uint64 // sessions so far
}

func (f *functions[C]) dial(ctx context.Context) (C, error) { return f.dialer(ctx) }

func (f *functions[C]) serve(ctx context.Context, c C, s *Session) (ending, error) {
	outer := f.calls.Enter(&watch.Serve)
	err := f.server(ctx, c, s)
	f.calls.Leave(outer)
	f.forgetKicks() // because there was no outage
	how := ending{reason: link.ReasonOf(err), lost: isLoss(err)}
	if ctx.Err() != nil {
		how.reason = backoff.ReasonShutdown
	}
	return how, err
}

func (f *functions[C]) connecting(bool, string)                  {}
func (f *functions[C]) attemptFailed()                           {}
func (f *functions[C]) troubled(bool, int, error, backoff.Class) {}
func (f *functions[C]) waiting(*WaitStart)                       {}
func (f *functions[C]) kick() <-chan struct{}                    { return f.kicks }

func (f *functions[C]) judge(err error) backoff.Verdict       { return f.o.classify(err) }
func (f *functions[C]) replaced(backoff.Verdict) bool         { return false }
func (f *functions[C]) limit(t backoff.Attempt) time.Duration { return dialLimit(t) }

func (f *functions[C]) dialed(_ C, s *Session) {
	f.n++
	s.Number, s.calls = f.n, nil
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
func dialLimit(t backoff.Attempt) time.Duration {
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
