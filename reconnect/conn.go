package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Conn is a connection that is kept open: one goroutine, the supervisor, dials and reads
// it, and dials again, until it is closed. Any goroutine may call its methods. In a
// callback mind what [Options.OnMessage] says of waiting.
type Conn struct {
	dialer   Dialer
	life     lifetime // ends when Close or Shutdown says so
	state    state
	receiver receiver
	sender   sender
	kicks    xsync.Flag
	stalls   int           // sessions in a row without data; belongs to the supervisor
	done     chan struct{} // closed when nothing is left
	err      error         // why it ended; read it after done only
}

// Dialer opens one connection, such as a [dialer.WebSocket]. It may have more methods:
//
//   - Validate() error: New calls it, and returns its error.
//   - Host() string: the default of [RunOptions.Host].
//   - DialTimeout(backoff.Attempt) time.Duration: how long one dial may take, if that is not the
//     sum of the Attempt's limits.
//
// [dialer.WebSocket]: https://pkg.go.dev/github.com/redial-go/redial/dialer#WebSocket
type Dialer interface {
	// Dial returns a new connection, which the Conn closes. It must return when ctx
	// ends; a connection that it returns later is closed. ctx carries a [backoff.Attempt].
	// Dial runs in a goroutine of its own. A second call may run beside one that takes
	// long: see [RunOptions.OneConnection].
	Dial(ctx context.Context) (conn.Conn, error)
}

// DialFunc is a function as a [Dialer].
type DialFunc func(ctx context.Context) (conn.Conn, error)

// Dial calls f.
func (f DialFunc) Dial(ctx context.Context) (conn.Conn, error) { return f(ctx) }

// New starts to keep a connection open, and returns at once. The first dial begins without
// a wait. Until a session is ready Write fails, unless [Options].WhenDown lets it wait;
// [Conn.AwaitReady] waits for the first session. The caller must call Close or Shutdown in
// the end. d must not be nil; o may be nil. The error names the option that is wrong.
func New(d Dialer, o *Options) (*Conn, error) {
	if v := reflect.ValueOf(d); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return nil, errors.New("reconnect: New needs a Dialer")
	}
	if v, ok := d.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	options, err := o.withDefaults(d)
	if err != nil {
		return nil, err
	}
	c := &Conn{dialer: d, done: make(chan struct{})}
	c.life.o = options
	c.state.start()
	c.receiver = newReceiver(&c.life)
	c.sender.life, c.sender.state = &c.life, &c.state
	if options.Outbox.OnReceipt != nil || options.WhenDown != WhenDownFail {
		c.sender.outbox = newOutbox(&c.life, &c.state)
	}
	go c.supervise() // Done says when it has ended
	return c, nil
}

// Close cuts the connection for good and returns at once, from wherever it is called:
// nothing more is read or written from then on. It only starts the end. Done is closed when
// nothing is left, which is after the callbacks and the dials under way have returned;
// [Trace.Overdue] reports those that ignore that their context has ended. Close returns
// nil, and may be called more than once.
func (c *Conn) Close() error {
	c.life.closed.Store(true)
	c.life.End()
	return nil
}

// Done returns a channel that is closed when no goroutine, timer or socket of the Conn is
// left: after Close, after Shutdown, or after the Conn has ended by itself.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil until Done is closed. After Close or Shutdown it returns [net.ErrClosed].
// After the Conn has ended by itself it returns an [*EndError], which says why, and which
// is [net.ErrClosed] as well.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Kick cuts the present wait short, if there is one. Call it when the network is back, or
// when a user presses "retry". During a dial it begins another one beside it at once. If
// there are two already, or with [RunOptions.OneConnection], it cuts the wait after the
// dial instead, if the dial fails. It never cuts the time that a server told us to wait,
// nor the wait at the gate.
func (c *Conn) Kick() {
	s := c.Status()
	if s.State == StateWaiting || s.State == StateConnecting && !s.AtGate {
		c.kicks.Raise()
	}
}

// Redial ends a session because of cause, and the supervisor dials again as after any loss.
// It is for a session that only the application knows to be broken, such as a feed with a
// gap. The peer gets a close frame, or what its protocol has instead, and has
// Options.CloseTimeout to answer. If cause has a method CloseCode() int, as a
// [conn.CloseError] has, and a close frame may carry that code, it is the code. Otherwise
// the code is 1000. A nil cause stands for no particular reason. Redial returns at once. It
// does nothing if session is not the present one.
func (c *Conn) Redial(session uint64, cause error) {
	if cause == nil {
		cause = errors.New("redial asked for")
	}
	if l := c.state.link.Load(); l != nil && l.session == session {
		l.part(cause, c.life.o.CloseTimeout)
	}
}

// EndError reports why a Conn ended by itself. It is [net.ErrClosed].
type EndError struct {
	Err error // the last error, whose verdict was ClassStop; or one that is [backoff.ErrGaveUp]
}

func (e *EndError) Error() string { return "closed: " + e.Err.Error() }

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// Is reports whether target is [net.ErrClosed].
func (e *EndError) Is(target error) bool { return target == net.ErrClosed }

// supervise is the supervisor goroutine. It ends the Conn even if a callback ends this
// goroutine.
func (c *Conn) supervise() {
	xsync.Guard(func() { supervise(&c.life.Context, &c.life.o.Run, owner[*link](c)) }, func() {
		go c.abandon() // closes done
	})
	c.finish()
}

// abandon ends a Conn whose supervisor was ended by a callback. It runs in a goroutine of
// its own, so that a panic of the callback ends the program.
func (c *Conn) abandon() {
	err := fmt.Errorf("%s: %w", c.serving(), errNotReturned)
	c.life.calling.leave()
	if l := c.state.link.Load(); l != nil {
		l.cut(err)
		c.release(l, err)
	}
	call(c.life.trace().End, End{Name: c.life.o.Name, Err: c.ended(err)})
	c.finish()
}

// finish ends the outbox and closes done.
func (c *Conn) finish() {
	c.sender.outbox.end()
	close(c.done)
}

func (c *Conn) dial(ctx context.Context) (*link, error) {
	c.life.counts.dials.Add(1)
	opened, err := c.dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if opened == nil {
		return nil, backoff.Permanent(fmt.Errorf("reconnect: %T returned neither a connection nor an error", c.dialer))
	}
	l := &link{conn: opened}
	l.late, _ = opened.(conn.BufferReader)
	return l, nil
}

// serve is one session: it opens the link, receives until the link is lost, and cleans up.
func (c *Conn) serve(ctx context.Context, l *link, s *Session) error {
	c.life.calling.enter(&elsewhere)
	err := c.open(l, s)
	c.life.calling.leave()
	if err == nil {
		c.ready(l, s)
		err = c.receiver.receive(ctx, l)
	}
	return c.lose(l, s, err)
}

// ready lets messages be sent by l, and begins to watch it.
func (c *Conn) ready(l *link, s *Session) {
	c.receiver.ready(l)
	c.sender.attach(l)
	c.state.enter(StateReady, func(st *Status) { st.Err, st.Verdict = nil, backoff.ClassOK })
	c.kicks.Lower()
	s.Ready()
	l.stall = newStall(&c.life, l, c.stalls)
	l.liveness.start(&c.life, l)
	l.stall.start()
}

// lose cleans up after a session, and puts the seam into the stream of messages.
func (c *Conn) lose(l *link, s *Session, err error) error {
	l.parted()
	l.cut(err)
	c.release(l, err)
	c.kicks.Lower() // because those were meant for an outage that is over
	c.state.enter(StateWaiting, func(st *Status) { st.Err = err })
	c.sender.detach(l, err)
	_, ready := s.readyAt()
	if !ready {
		c.failed()
	}
	if ready || l.delivered {
		c.life.counts.lost.Add(1)
		c.receiver.seam(&Seam{Session: l.session, Cause: err, Lost: 1})
	}
	if c.life.leaving.Load() && !c.sender.outbox.draining() {
		return backoff.Permanent(err)
	}
	return err
}

// release stops the timers of l, which was cut because of err.
func (c *Conn) release(l *link, err error) {
	c.life.calling.enter(&elsewhere)
	l.liveness.stop()
	c.stalls = l.stall.stop(err, c.stalls)
	c.life.calling.leave()
}

// These are the methods of an owner, besides dial and serve.

func (c *Conn) connecting(atGate bool) {
	if s := c.Status(); s.State != StateConnecting || s.AtGate != atGate {
		c.state.enter(StateConnecting, func(s *Status) { s.AtGate = atGate })
	}
}

func (c *Conn) dialed(l *link, s *Session) {
	l.session = s.Number
	c.receiver.open()
	c.life.counts.sessions.Store(s.Number)
	c.state.link.Store(l)
	c.state.enter(StateOpening, func(st *Status) { st.Session = s.Number })
}

func (c *Conn) troubled(atGate bool, try int, err error, verdict backoff.Class) {
	c.state.edit(func(s *Status) { s.AtGate, s.Try, s.Err, s.Verdict = atGate, try, err, verdict })
}

func (c *Conn) failed() { c.life.counts.failures.Add(1) }

func (c *Conn) lost(l *link, _ error) bool { return l.broken }

func (c *Conn) waiting(w Wait, verdict backoff.Class) {
	c.state.enter(StateWaiting, func(s *Status) {
		s.Try, s.Err, s.Verdict = w.Try-1, w.Cause, verdict
		s.Next = time.Now().Add(w.Verdict.RetryAfter + w.Drawn)
	})
}

func (c *Conn) ended(err error) error {
	if c.life.Ended() || c.life.leaving.Load() {
		err = net.ErrClosed
	} else {
		err = &EndError{Err: err}
	}
	c.err = err
	c.state.enter(StateClosed, func(s *Status) { s.Err = err })
	return err
}

// serving returns the name of the callback that runs in the supervisor's goroutine. It is
// empty if the supervisor waits for a callback in another goroutine, which is reported
// there.
func (c *Conn) serving() string {
	if name := c.life.calling.name.Load(); name != nil {
		return *name
	}
	if l := c.state.link.Load(); l != nil && l.turn.Load()&turnMask == handling {
		return "OnMessage"
	}
	return "a hook"
}

func (c *Conn) limit(t backoff.Attempt) time.Duration {
	d, ok := c.dialer.(interface {
		DialTimeout(backoff.Attempt) time.Duration
	})
	if ok {
		return d.DialTimeout(t)
	}
	return dialLimit(t)
}

func (c *Conn) kick() <-chan struct{} { return c.kicks.Up() }

func (c *Conn) took(bool) bool {
	c.kicks.Lower()
	return true
}

func (c *Conn) forgetKicks() { c.kicks.Lower() }
